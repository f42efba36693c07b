package protocol

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// TurnResult is what one turn did: the structured content of the tools' results, and what a server
// keeps of a turn that another server may continue. Its texts are shown on one line and are
// shortened, but for Content and Output. The tags required, enum, about and parts are for its schema.
type TurnResult struct {
	// ThreadID is the id of the thread, "" if none began.
	ThreadID string `json:"threadId" required:"true" about:"For codex-reply."`
	// Content is the answer with what the caller should know besides.
	Content string `json:"content" required:"true" about:"The answer."`
	// Output is the answer as JSON, or nil if the caller wanted none or the answer does not fit its schema.
	Output jsontext.Value `json:"output,omitzero" about:"The answer as JSON, by output-schema."`
	// Check is how the turn's check ended, without a command for a turn without one.
	Check Check `json:"check,omitzero" about:"command, exitCode, tries, output; passed, or why there is no verdict."`
	// Outcome is what a review comes to, and Why why it is unknown or there was nothing to review.
	Outcome ReviewOutcome `json:"outcome,omitzero" enum:"pass,findings,unknown" about:"pass: no fault in all that was to review."`
	Why     string        `json:"why,omitzero" about:"Why the outcome is unknown, or nothing was to review."`
	// Findings and Verdict are those of a review. Findings is nil for other turns, Verdict if the
	// review has none.
	Findings []Finding `json:"findings,omitzero" about:"title, body, path, startLine, endLine, priority (0 worst, to 3), confidence; outsideDiff if not in the diff."`
	Verdict  *Verdict  `json:"verdict,omitzero" about:"correct, explanation, confidence."`
	// Status is how the turn ended, or that it continues; "" before it begins.
	Status TurnStatus `json:"status,omitzero" enum:"completed,incomplete,failed,aborted,waiting,running"`
	// Stopped is the caller's limit that ended the turn, or "".
	Stopped string `json:"stopped,omitzero" about:"A spent budget."`
	// Model is the name of the model that answers.
	Model string `json:"model,omitzero"`
	// Rerouted has the first changes of what answers, in their order.
	Rerouted []Rerouted `json:"rerouted,omitempty"`
	// Worktree is the git worktree that was made for the thread before the turn, or nil.
	Worktree *Worktree `json:"worktree,omitzero" about:"path, branch, base, commit"`
	// Attempts are the others of several attempts, of which this one is the best; nil for other turns.
	Attempts []Attempt `json:"attempts,omitempty" about:"The others, best first."`
	// DurationMS is the time from the begin of the turn to its end, or to now, in milliseconds.
	DurationMS int64 `json:"durationMs"`
	// Usage is nil while the tokens are not known.
	Usage *TurnUsage `json:"usage,omitzero" about:"Tokens of turn and thread: input, cached, output, reasoning."`
	// Plan is the model's last plan.
	Plan []PlanStep `json:"plan,omitzero" about:"Each a step and its status."`
	// ChangesFrom says what the changes are taken from; "" before the turn begins.
	ChangesFrom ChangesSource `json:"changesFrom,omitzero" enum:"tree,events" about:"tree: what differs on disk. events: patches alone."`
	// Changes are the files that changed, sorted by path.
	Changes []Change `json:"changes" parts:"true" about:"As git diff --numstat."`
	// Unknown names where changes were not looked for.
	Unknown []Unknown `json:"unknown,omitzero" about:"Not looked at: path, why."`
	// Commands are the commands that ran, in the order of their start.
	Commands []Command `json:"commands" parts:"true" about:"approvedBy: if a question was asked."`
	// Refused is what was not approved, in the order of the decisions, and then what failed. A turn that is completed may
	// have refusals.
	Refused []Refusal `json:"refused" about:"What was not approved, so not done; of kind failed a patch that could not be applied: kind, what, cwd, why, by, reason."`
	// Missing are the configured MCP servers whose tools the turn did not have.
	Missing []Missing `json:"missing,omitzero" about:"MCP servers that did not start: server, why."`
	// Truncated says how much is left out.
	Truncated Truncated `json:"truncated,omitzero" about:"How much is left out, and where to see it."`
}

// Check is how the check of a turn ended: a line that says whether the turn is done.
type Check struct {
	// Command is the line.
	Command string `json:"command"`
	// Passed is nil if there is no verdict, as Why says.
	Passed *bool  `json:"passed,omitzero"`
	Why    string `json:"why,omitzero"`
	// ExitCode is the last one, nil if the line did not run, and negative if it did not run to its end.
	ExitCode *int `json:"exitCode,omitzero"`
	// Tries is how often the model has worked at it, from 1.
	Tries int `json:"tries"`
	// Output is the head and the tail of what it printed last.
	Output string `json:"output,omitzero"`
}

// ReviewOutcome is what a review comes to.
type ReviewOutcome string

// The outcomes.
const (
	ReviewPass     ReviewOutcome = "pass"     // no finding, the change is correct, and all of it was handed over
	ReviewFindings ReviewOutcome = "findings" // any finding, or the change is incorrect
	ReviewUnknown  ReviewOutcome = "unknown"
)

// TurnStatus is the state of a turn.
type TurnStatus string

// The statuses. Idle and unknown are those of threads without a turn.
const (
	StatusCompleted  TurnStatus = "completed"
	StatusIncomplete TurnStatus = "incomplete" // the answer is cut off, empty or in no form, or the check did not pass
	StatusFailed     TurnStatus = "failed"
	StatusAborted    TurnStatus = "aborted" // by a person, a question, or the budget
	StatusWaiting    TurnStatus = "waiting" // for the answer to a question
	StatusRunning    TurnStatus = "running"
	StatusIdle       TurnStatus = "idle" // the thread is open, and no turn runs
	StatusUnknown    TurnStatus = "unknown"
)

// Ended reports whether the turn does not continue.
func (s TurnStatus) Ended() bool { return s != StatusRunning && s != StatusWaiting }

// Rerouted is a change of what answers, with its Reason, see [ModelReroute].
type Rerouted struct {
	// FromProvider and FromModel answered before. A provider that is not known is "".
	FromProvider string `json:"fromProvider,omitzero"`
	FromModel    string `json:"fromModel"`
	// ToProvider and ToModel answer from then on.
	ToProvider string `json:"toProvider,omitzero"`
	ToModel    string `json:"toModel"`
	Reason     string `json:"reason"`
}

// Worktree is a git worktree on a branch of its own.
type Worktree struct {
	// Path is its top folder, and Branch the name of the branch.
	Path   string `json:"path"`
	Branch string `json:"branch"`
	// Base is the commit at which the branch began, and Commit its last one, "" while that is the same or not known.
	Base   string `json:"base,omitzero"`
	Commit string `json:"commit,omitzero"`
}

// MaxAttempts is how many attempts a call may have.
const MaxAttempts = 4

// Attempt is one of several attempts in short.
type Attempt struct {
	ThreadID string     `json:"threadId"`
	Status   TurnStatus `json:"status"`
	// Branch and Commit are those of its worktree. The commit is short.
	Branch string `json:"branch,omitzero"`
	Commit string `json:"commit,omitzero"`
	// Check says whether its check passed, nil without a verdict. Touched is true if it has changed files that the check may
	// read.
	Check   *bool `json:"check,omitzero"`
	Touched bool  `json:"touched,omitzero"`
	// Files and Lines count what it has changed, and Tokens what it used.
	Files  int   `json:"files"`
	Lines  int   `json:"lines"`
	Tokens int64 `json:"tokens,omitzero"`
}

// TurnUsage counts tokens.
type TurnUsage struct {
	// Turn counts those of the turn, and Thread those of its thread.
	Turn   Tokens `json:"turn"`
	Thread Tokens `json:"thread"`
}

// Tokens are numbers of tokens.
type Tokens struct {
	// Input includes Cached, which were read from the provider's cache.
	Input  int64 `json:"input"`
	Cached int64 `json:"cached"`
	// Output includes Reasoning.
	Output    int64 `json:"output"`
	Reasoning int64 `json:"reasoning"`
}

// ChangesSource is what the changes of a turn are taken from.
type ChangesSource string

// The sources.
const (
	ChangesFromTree   ChangesSource = "tree"   // the folder before and after the turn
	ChangesFromEvents ChangesSource = "events" // the turn's patches; its commands may have changed more
)

// ChangeOrigin says what of the turn may have made a change. The folder shows only what has changed.
type ChangeOrigin string

// The origins.
const (
	ByPatch   ChangeOrigin = "patch"   // a patch of the turn explains the change
	ByCommand ChangeOrigin = "command" // the turn ran commands or tools
	ByOther   ChangeOrigin = "other"   // the turn ran none
)

// Change is a file that changed.
type Change struct {
	// Path is relative to the top of the repository, or absolute outside of it. It is quoted as git
	// does if it has characters that a person would not see.
	Path string `json:"path"`
	// From is the path before a rename, or "".
	From string `json:"from,omitzero"`
	// Kind is add, update, delete or rename.
	Kind string `json:"kind" enum:"add,update,delete,rename"`
	// Added and Removed count lines. They are nil if the file is not text.
	Added   *int `json:"added,omitzero"`
	Removed *int `json:"removed,omitzero"`
	// By says how sure it is that this turn made the change.
	By ChangeOrigin `json:"by,omitzero" enum:"patch,command,other" about:"other: unsure."`
}

// String returns the change in a line, such as "update main.c (+1 -2)".
func (c Change) String() string {
	s := c.Kind + " " + c.Path
	if c.From != "" {
		s = c.Kind + " " + c.From + " to " + c.Path
	}
	if c.Added != nil && c.Removed != nil {
		s += fmt.Sprintf(" (+%d -%d)", *c.Added, *c.Removed)
	}
	return s
}

// Unknown is a place where changes were not looked for, and Why, for people.
type Unknown struct {
	// Path is a file, or a folder if it ends with a slash.
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Command is a command that ran.
type Command struct {
	// ID is the number of the command in its thread, from 1, for codex-show; 0 if it is not known.
	ID int `json:"id,omitzero"`
	// Command is the command line as questions show it.
	Command string `json:"command"`
	// Cwd is its folder. "" is the working folder of the thread.
	Cwd string `json:"cwd,omitzero"`
	// ExitCode and DurationMS, in milliseconds, are nil while the command runs, or if its end was not
	// reported.
	ExitCode   *int   `json:"exitCode,omitzero"`
	DurationMS *int64 `json:"durationMs,omitzero"`
	// ApprovedBy is who approved it, "" if no question was asked.
	ApprovedBy string `json:"approvedBy,omitzero"`
	// Check is true for the turn's check, and Setup for the set-up of its worktree.
	Check bool `json:"check,omitzero"`
	Setup bool `json:"setup,omitzero"`
}

// String returns the command in a line, such as "go test ./... (exit 1)".
func (c Command) String() string {
	if c.ExitCode == nil {
		return c.Command
	}
	return fmt.Sprintf("%s (exit %d)", c.Command, *c.ExitCode)
}

// RefusedFailed is the kind of a patch that was to be applied and could not be, by the engine, and that no later patch made up for.
const RefusedFailed = "failed"

// Refusal is something that was not approved, or that failed.
type Refusal struct {
	// Kind is command, patch, access, host, failed or other.
	Kind string `json:"kind"`
	// What is the command as a person writes it, the paths of the patch, the host, or the question.
	What string `json:"what"`
	// Cwd is a command's folder. "" is the working folder.
	Cwd string `json:"cwd,omitzero"`
	// Why is what the model was told, "" if the content says it.
	Why string `json:"why,omitzero"`
	// By is who decided.
	By string `json:"by"`
	// Reason is the kind of reason as one word, as in package elicit.
	Reason string `json:"reason,omitzero"`
}

// String returns the refusal in a line, such as "not run: git push (declined)".
func (r Refusal) String() string {
	done := "done"
	switch r.Kind {
	case "command":
		done = "run"
	case "patch", RefusedFailed:
		done = "applied"
	case "access":
		done = "given"
	case "host":
		done = "reached"
	}
	if r.Why == "" {
		return fmt.Sprintf("not %s: %s", done, r.What)
	}
	return fmt.Sprintf("not %s: %s (%s)", done, r.What, r.Why)
}

// Missing is a configured MCP server that did not start.
type Missing struct {
	// Server is its name in the configuration, and Why the reason, for people.
	Server string `json:"server"`
	Why    string `json:"why"`
}

// String returns the server in a line, such as "MCP server db did not start, its tools are missing: exit status 1".
func (m Missing) String() string {
	return fmt.Sprintf("MCP server %s did not start, its tools are missing: %s", m.Server, m.Why)
}

// Finding is a finding of a review.
type Finding struct {
	// Title is the finding in a line, and Body explains it.
	Title string `json:"title"`
	Body  string `json:"body"`
	// Path is relative to the top of the repository, with slashes.
	Path string `json:"path"`
	// StartLine and EndLine are 0 if there are no valid ones.
	StartLine int `json:"startLine,omitzero"`
	EndLine   int `json:"endLine,omitzero"`
	// Priority is from 0, the most urgent, to 3; nil for none.
	Priority *int `json:"priority,omitzero"`
	// Confidence is from 0 to 1; nil for none.
	Confidence *float64 `json:"confidence,omitzero"`
	// OutsideDiff is true if none of the finding's lines is in the change.
	OutsideDiff bool `json:"outsideDiff,omitzero"`
}

// Verdict is a reviewer's judgement of the whole change.
type Verdict struct {
	// Correct means that the reviewer sees no fault that must be corrected, as the Explanation says.
	Correct     bool   `json:"correct"`
	Explanation string `json:"explanation"`
	// Confidence is from 0 to 1; nil for none.
	Confidence *float64 `json:"confidence,omitzero"`
}

// Truncated says what was left out of a [TurnResult].
type Truncated struct {
	// Content, Output, and Check of its output, count bytes.
	Content int `json:"content,omitzero"`
	Output  int `json:"output,omitzero"`
	Check   int `json:"check,omitzero"`
	// Changes and Unknown count files.
	Changes int `json:"changes,omitzero"`
	Unknown int `json:"unknown,omitzero"`
	// Commands, Refused and Plan count what the turn did, and Missing servers.
	Commands int `json:"commands,omitzero"`
	Refused  int `json:"refused,omitzero"`
	Missing  int `json:"missing,omitzero"`
	Plan     int `json:"plan,omitzero"`
	// Findings counts those of a review.
	Findings int `json:"findings,omitzero"`
	// See says where the whole can be read.
	See string `json:"see,omitzero"`
}
