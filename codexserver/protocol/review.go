package protocol

// ReviewTarget says which changes of a git repository a review is about.
type ReviewTarget string

// The targets of a review.
const (
	// ReviewUncommitted is what differs from the last commit, new files too.
	ReviewUncommitted ReviewTarget = "uncommitted"
	// ReviewBase is what differs from the commit where the branch left another one.
	ReviewBase ReviewTarget = "base"
	// ReviewCommit is what one commit changed.
	ReviewCommit ReviewTarget = "commit"
)

// ReviewTargets lists the targets in the order of the tool schema's enum.
func ReviewTargets() []ReviewTarget {
	return []ReviewTarget{ReviewUncommitted, ReviewBase, ReviewCommit}
}

// Review is what a conversation is asked to review.
type Review struct {
	// Target is what is compared.
	Target ReviewTarget
	// Revision is the branch of [ReviewBase] or the commit of [ReviewCommit]: a
	// plain name, or else the commit's hash.
	Revision string
	// Instructions are the caller's own, or "".
	Instructions string
	// Prompt is the whole task in words: the changes, the instructions, and the form of
	// the answer. An engine without a review of its own passes it to the model.
	Prompt string
}
