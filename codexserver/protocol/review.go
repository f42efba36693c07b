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
