package report

import (
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/gitinfo"
	"github.com/codexmcp/codexmcp/codexserver/internal/review"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json/jsontext"
)

// Status is the state of a turn.
type Status string

// The statuses.
const (
	Completed Status = "completed"
	Failed    Status = "failed"
	Aborted   Status = "aborted"
	Waiting   Status = "waiting" // for an answer to a question
	Running   Status = "running"
)

// Source says where the changes are from.
type Source string

// The sources.
const (
	FromTree   Source = "tree"   // the folder before and after the turn
	FromEvents Source = "events" // the patches of the turn; commands may have changed more
)

// Report is what one turn did.
type Report struct {
	// ThreadID is the thread's.
	ThreadID string
	// Content is the text of the result.
	Content string
	// Output is the final answer where it has to be JSON, nil otherwise.
	Output jsontext.Value
	// Status is the turn's state. "" is a turn that was not watched.
	Status Status
	// Stopped is why a turn was ended that its caller had bounded, "" for others.
	Stopped string
	// Model is the model that answers.
	Model string
	// Usage is nil while it is not known.
	Usage *Usage
	// Quota is what the provider said last of the account's limits, nil if nothing.
	Quota *protocol.RateLimits
	// Duration is from the begin of the turn to its end, or to now.
	Duration time.Duration
	// Changes are sorted by path.
	Changes []gitinfo.Change
	// ChangesFrom is "" before the turn begins.
	ChangesFrom Source
	// Commands are those that ran, in the order of their begin.
	Commands []Command
	// Refused are what was asked for and not approved, in the order of the decisions.
	Refused []Refusal
	// More says, where something was cut, where it can be read.
	More string
	// Plan is the model's last one.
	Plan []protocol.PlanStep
	// Review is what a review found, nil if the turn was not a review.
	Review *review.Result

	// omitted counts what was left out of the lists before.
	omitted counts
}

// Usage counts the tokens of the turn and of its thread.
type Usage struct{ Turn, Thread protocol.TokenUsage }

// Command is a command that ran.
type Command struct {
	// ID is its number in the thread, from 1 on.
	ID int
	// Shown is the argv as questions show it, shortened.
	Shown string
	// Cwd is the folder, shortened.
	Cwd string
	// Exit is nil while the command runs, or when nothing reported its end.
	Exit *Exit
	// ApprovedBy is "" when no question was asked.
	ApprovedBy approval.Decider
}

// Exit is how a command ended.
type Exit struct {
	Code     int
	Duration time.Duration
}

// Refusal is something that was not approved.
type Refusal struct {
	// Kind is "command", "patch" or "other".
	Kind string
	// What is the command, the patch's paths, or the question, shortened.
	What string
	// Cwd is a command's folder.
	Cwd string
	// Why is the reason that the model received.
	Why string
	// By is who decided.
	By approval.Decider
	// Reason is the reason in a word.
	Reason elicit.Reason
}
