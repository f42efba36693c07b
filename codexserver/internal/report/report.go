package report

import (
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/codexmcp/codexmcp/codexserver/internal/review"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json/jsontext"
)

// Source is where the changes come from.
type Source string

// The sources.
const (
	FromTree   Source = "tree"   // the folder before and after the turn
	FromEvents Source = "events" // the turn's patches; its commands may have changed more
)

// Report is what one turn did.
type Report struct {
	// ThreadID is the id of the thread.
	ThreadID string
	// Content is the text of the result.
	Content string
	// Output is the final answer if the caller wanted JSON, otherwise nil.
	Output jsontext.Value
	// Status is the turn's state. "" means that the turn was not watched.
	Status turnlog.Status
	// Stopped is the caller's limit that ended the turn, or "".
	Stopped string
	// Model is what answers.
	Model turnlog.Model
	// Usage is nil while it is not known.
	Usage *turnlog.Usage
	// Duration is from the begin of the turn to its end, or to now.
	Duration time.Duration
	// Changes are what has changed in its folder.
	Changes Changes
	// Commands are the commands that ran, in the order of their start.
	Commands []turnlog.Command
	// Refused lists what was not approved, in the order of the decisions.
	Refused []turnlog.Refusal
	// More names the place where the whole can be read if something was cut.
	More string
	// Plan is the model's last plan.
	Plan []protocol.PlanStep
	// Review is the result of a review, or nil for other turns.
	Review *review.Result

	// dropped counts the elements that the log dropped.
	dropped turnlog.Dropped
}

// MoreRefused returns how many refusals there were before those of the list.
func (r *Report) MoreRefused() int { return r.dropped.Refused }

// Worktree is a git worktree on a branch of its own.
type Worktree struct {
	// Path is its top folder, and Branch the name of the branch.
	Path   string `json:"path"`
	Branch string `json:"branch"`
}

// Changes are what a turn has changed.
type Changes struct {
	// List is sorted by path.
	List []Change
	// Dir is the folder to which paths in the list are relative.
	Dir string
	// Worktree is the git worktree that was made for the thread before the turn, or nil.
	Worktree *Worktree
	// From is "" before the turn begins.
	From Source
	// Unknown names where changes were not looked for.
	Unknown []repo.Gap
	// Untold is true if commands may have changed files, and the list does not show it.
	Untold bool

	omitted int    // elements that the log dropped
	diff    string // of a turn that has ended
}

// Paths returns the paths of the first changes, and their number if there are more; "" if
// there are none.
func (c *Changes) Paths() string {
	paths := make([]string, len(c.List))
	for i, one := range c.List {
		paths[i] = one.Path
	}
	return turnlog.ShowPaths(paths)
}

// Remark returns a sentence for the caller if what commands changed is not known, or "".
func (c *Changes) Remark() string {
	if !c.Untold || len(c.Unknown) == 0 {
		return ""
	}
	return "What the commands of this turn changed is not known: " + turnlog.Show(c.Unknown[0].Why, turnlog.MaxWords) + "."
}
