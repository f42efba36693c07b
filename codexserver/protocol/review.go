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

// Review is what a conversation is asked to review.
type Review struct {
	Target ReviewTarget
	// Revision is the branch of the Target [ReviewBase], as the caller names it, or the hash of [ReviewCommit].
	Revision string
	// Instructions are the caller's own, or "".
	Instructions string
}
