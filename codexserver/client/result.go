package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/mcpcall"
	"github.com/codexmcp/codexmcp/mcptypes"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Status is the state of a turn.
type Status string

// The statuses. Idle and Unknown are those of [Client.Wait] only.
const (
	Done        Status = "completed"
	Cut         Status = "incomplete" // the answer is cut off, or empty
	Failed      Status = "failed"
	Interrupted Status = "aborted" // by a person, a question, or the budget
	Running     Status = "running"
	Waiting     Status = "waiting" // for the answer to a question
	Idle        Status = "idle"    // the conversation is open, and no turn runs
	Unknown     Status = "unknown"
)

// Ended reports whether the turn does not continue.
func (s Status) Ended() bool { return s != Running && s != Waiting }

// Result is the result of a turn.
type Result struct {
	// Thread is the id of the conversation, "" if none began.
	Thread string
	// Task is the id of the task of MCP, "" if the turn was none.
	Task string
	// Status is how the turn ended, or that it continues.
	Status Status
	// Answer is the last message of the turn, or why there is none.
	Answer string
	// Notes are for the user: why the answer is not whole, what could not be asked, and
	// what was ignored.
	Notes []string
	// Output is the answer as JSON, if it fits the task's schema.
	Output json.RawMessage
	// Stopped says which budget was spent, or is "".
	Stopped string
	// Model is the model that answered.
	Model string
	// Duration is how long the turn took.
	Duration time.Duration
	// Usage is nil if the tokens are not known.
	Usage *Usage
	// Changes are the files that differ from before the turn.
	Changes []Change
	// Commands are the commands that ran.
	Commands []Command
	// Refused is what was not approved. A turn that is Done may have refusals.
	Refused []Refusal
	// Findings and Verdict are those of a review.
	Findings []Finding
	Verdict  *Verdict
	// Raw is the result of tools/call, with all that is not above.
	Raw json.RawMessage
}

// Usage counts tokens.
type Usage struct {
	// Turn counts those of the turn.
	Turn Tokens `json:"turn"`
	// Thread counts those of the conversation.
	Thread Tokens `json:"thread"`
}

// Tokens are numbers of tokens.
type Tokens struct {
	// Input includes Cached.
	Input int64 `json:"input"`
	// Cached were read from the provider's cache.
	Cached int64 `json:"cached"`
	// Output includes Reasoning.
	Output int64 `json:"output"`
	// Reasoning is the model's reasoning.
	Reasoning int64 `json:"reasoning"`
}

// Change is a file that changed.
type Change struct {
	// Path is relative to the top of the repository, or absolute outside of it.
	Path string `json:"path"`
	// From is the path before a rename, or "".
	From string `json:"from"`
	// Kind is add, update, delete or rename.
	Kind string `json:"kind"`
	// Added is how many lines were added, nil if the file is not text.
	Added *int `json:"added"`
	// Removed is how many lines were removed, nil if the file is not text.
	Removed *int `json:"removed"`
	// By is patch, command or other: how sure it is that this turn made the change.
	By string `json:"by"`
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

// Command is a command that ran.
type Command struct {
	// ID is the number for [View].Command.
	ID int `json:"id"`
	// Command is the command line, shortened.
	Command string `json:"command"`
	// Cwd is its folder. "" is the working folder of the conversation.
	Cwd string `json:"cwd"`
	// ExitCode is nil if the command's end is not known.
	ExitCode *int `json:"exitCode"`
	// DurationMs is in milliseconds, nil if the command's end is not known.
	DurationMs *int64 `json:"durationMs"`
	// ApprovedBy is who approved it, "" if it was not asked about.
	ApprovedBy string `json:"approvedBy"`
}

// String returns the command in a line, such as "go test ./... (exit 1)".
func (c Command) String() string {
	if c.ExitCode == nil {
		return c.Command
	}
	return fmt.Sprintf("%s (exit %d)", c.Command, *c.ExitCode)
}

// Refusal is something that was not approved.
type Refusal struct {
	// Kind is command, patch, access or other.
	Kind string `json:"kind"`
	// What is the command, the paths of the patch, or the question.
	What string `json:"what"`
	// Why is what the model was told.
	Why string `json:"why"`
	// By is who decided.
	By string `json:"by"`
	// Reason is the kind of reason, as in package elicit.
	Reason string `json:"reason"`
}

// String returns the refusal in a line, such as "not run: git push (declined)".
func (r Refusal) String() string {
	done := "done"
	switch r.Kind {
	case "command":
		done = "run"
	case "patch":
		done = "applied"
	case "access":
		done = "given"
	}
	return fmt.Sprintf("not %s: %s (%s)", done, r.What, r.Why)
}

// Finding is a finding of a review.
type Finding struct {
	// Title is the finding in a line.
	Title string `json:"title"`
	// Body explains it.
	Body string `json:"body"`
	// Path is relative to the top of the repository.
	Path string `json:"path"`
	// StartLine is the first line, 0 for none.
	StartLine int `json:"startLine"`
	// EndLine is the last line, 0 for none.
	EndLine int `json:"endLine"`
	// Priority is from 0, the most urgent, to 3; nil for none.
	Priority *int `json:"priority"`
	// OutsideDiff means that the finding is not about the change.
	OutsideDiff bool `json:"outsideDiff"`
}

// Verdict is the verdict of a review.
type Verdict struct {
	// Correct means that the reviewer sees no fault that must be corrected.
	Correct bool `json:"correct"`
	// Explanation is why.
	Explanation string `json:"explanation"`
}

// Err returns nil if the turn is Done, Running or Waiting, and otherwise a [*TurnError].
func (r *Result) Err() error {
	switch r.Status {
	case Done, Running, Waiting:
		return nil
	}
	return &TurnError{r.Thread, r.Status, r.Answer}
}

// TurnError is a turn without a whole answer as an error.
type TurnError struct {
	// Thread is the conversation, which can be continued.
	Thread string
	// Status is how the turn ended.
	Status Status
	// Answer is the [Result]'s.
	Answer string
}

// Error implements error.
func (e *TurnError) Error() string {
	ended := "the turn is " + string(e.Status)
	switch e.Status {
	case Failed:
		ended = "the turn failed"
	case Interrupted:
		ended = "the turn was aborted"
	case Cut:
		ended = "the answer is incomplete"
	}
	return ended + ": " + mcpcall.Brief(e.Answer)
}

// ToolError is a failure that the server reports for a call without a turn, such as a
// conversation that it does not know.
type ToolError struct {
	// Tool is the name of the tool.
	Tool string
	// Message is the server's.
	Message string
}

// Error implements error.
func (e *ToolError) Error() string { return e.Tool + ": " + mcpcall.Brief(e.Message) }

// structured is the structured content of a turn's result.
type structured struct {
	ThreadID   string         `json:"threadId"`
	Content    string         `json:"content"`
	Status     Status         `json:"status"`
	Output     jsontext.Value `json:"output"`
	Stopped    string         `json:"stopped"`
	Model      string         `json:"model"`
	DurationMs int64          `json:"durationMs"`
	Usage      *Usage         `json:"usage"`
	Changes    []Change       `json:"changes"`
	Commands   []Command      `json:"commands"`
	Refused    []Refusal      `json:"refused"`
	Findings   []Finding      `json:"findings"`
	Verdict    *Verdict       `json:"verdict"`
}

func (s *structured) result() Result {
	return Result{
		Thread: s.ThreadID, Status: s.Status, Answer: s.Content, Output: json.RawMessage(s.Output), Stopped: s.Stopped,
		Model: s.Model, Duration: time.Duration(s.DurationMs) * time.Millisecond, Usage: s.Usage,
		Changes: s.Changes, Commands: s.Commands, Refused: s.Refused, Findings: s.Findings, Verdict: s.Verdict,
	}
}

// toolResult decodes the result of tools/call, and the texts that are for everybody.
func toolResult(raw json.RawMessage) (r mcptypes.CallToolResult, texts []string, err error) {
	if err := jsonv2.Unmarshal(raw, &r); err != nil {
		return r, nil, fmt.Errorf("client: %w: %s", mcpcall.ErrAnswer, mcpcall.Brief(err.Error()))
	}
	for _, block := range r.Content {
		text, ok := block.(*mcptypes.TextContent)
		if !ok || text.Annotations != nil && !slices.Contains(text.Annotations.Audience, mcptypes.RoleUser) && len(text.Annotations.Audience) > 0 {
			continue
		}
		texts = append(texts, text.Text)
	}
	return r, texts, nil
}

// turnResult decodes the result of a turn.
func turnResult(raw json.RawMessage) (Result, error) {
	r, texts, err := toolResult(raw)
	if err != nil {
		return Result{}, err
	}
	var s structured
	if len(r.StructuredContent) > 0 {
		if err := jsonv2.Unmarshal(r.StructuredContent, &s); err != nil {
			return Result{}, fmt.Errorf("client: %w: structuredContent: %s", mcpcall.ErrAnswer, mcpcall.Brief(err.Error()))
		}
	}
	result := s.result()
	result.Raw = raw
	if len(texts) > 0 {
		result.Answer = texts[0]
		for _, note := range texts[1:] {
			result.Notes = append(result.Notes, strings.TrimPrefix(note, "\n"))
		}
	}
	result.Status = cmp.Or(s.Status, Done)
	if r.IsError != nil && *r.IsError && s.Status != Interrupted {
		result.Status = Failed
	}
	return result, nil
}

// LostError means that the connection ended before the answer to a request that may have begun
// work. The request is not sent again. What it did remains.
type LostError struct {
	// Thread is the conversation, "" if it is not known: continue it with [Task].Thread.
	Thread string
	// Task is the id of the task, "" if it is not known: ask for it with [Client.Resume].
	Task string
	// Err is what happened.
	Err error
}

// Error implements error.
func (e *LostError) Error() string {
	where := "whether the turn began is not known"
	switch {
	case e.Task != "":
		where = "task " + e.Task
	case e.Thread != "":
		where = "conversation " + e.Thread
	}
	return fmt.Sprintf("client: the server's answer was lost (%s): %v", where, e.Err)
}

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

// ErrAnswer is the error of an answer that cannot be read. The turn may have run.
var ErrAnswer = mcpcall.ErrAnswer
