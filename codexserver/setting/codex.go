package setting

import (
	"cmp"
	"time"
)

// Codex says how the installed Codex runs turns. The zero value is the default.
type Codex struct {
	// Reviewer is who decides what Codex asks about. Default: [ReviewerCodex].
	Reviewer Reviewer
	// Reconnect is how long a turn may wait for the network while nothing else happens, before it fails.
	// Default: two minutes. With a negative value it waits as long as Codex does, which is for ever.
	Reconnect time.Duration
}

// Reviewer is who decides what Codex asks about.
type Reviewer string

// The reviewers.
const (
	// ReviewerCodex is who approvals_reviewer in config.toml names. With auto_review that is a model.
	ReviewerCodex Reviewer = "codex"
	// ReviewerPerson has a person, or a rule, decide in each conversation, whatever config.toml says.
	ReviewerPerson Reviewer = "person"
)

// Resolved returns c with its defaults.
func (c Codex) Resolved() Codex {
	c.Reviewer = cmp.Or(c.Reviewer, ReviewerCodex)
	c.Reconnect = cmp.Or(c.Reconnect, 2*time.Minute)
	return c
}
