package protocol

import (
	stdjson "encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Duration is a [time.Duration] with the wire form {"secs":0,"nanos":0}.
type Duration time.Duration

type wireDuration struct {
	Secs  int64 `json:"secs"`
	Nanos int64 `json:"nanos"`
}

// MarshalJSON writes the wire form.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireDuration{int64(d) / 1e9, int64(d) % 1e9})
}

// UnmarshalJSON reads the wire form.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var w wireDuration
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("duration: %w", err)
	}
	*d = Duration(time.Duration(w.Secs)*time.Second + time.Duration(w.Nanos))
	return nil
}

// ParsedCommand is what a part of a command, the shell text Cmd, does, judged by its words.
type ParsedCommand struct {
	// Type is "read", "list_files", "search" or "unknown".
	Type string `json:"type"`
	Cmd  string `json:"cmd"`
	// Name is the file that a read reads.
	Name *string `json:"name,omitzero"`
	// Query is what a search looks for. A search writes nil as null.
	Query *string `json:"query,omitzero"`
	// Path is the folder of list_files and search, which write nil as null.
	Path *string `json:"path,omitzero"`
}

// MarshalJSON writes the members of the type, and null for those without a value.
func (p ParsedCommand) MarshalJSON() ([]byte, error) {
	m := map[string]any{"type": p.Type, "cmd": p.Cmd}
	switch p.Type {
	case "read":
		m["name"] = p.Name
	case "list_files":
		m["path"] = p.Path
	case "search":
		m["query"], m["path"] = p.Query, p.Path
	}
	return json.Marshal(m, json.Deterministic(true))
}

// OutputStream names one of a command's output streams.
type OutputStream string

// The two streams.
const (
	Stdout OutputStream = "stdout"
	Stderr OutputStream = "stderr"
)

// ExecCommandBegin says that a Command, an argv, was started by the call CallID of the turn TurnID.
type ExecCommandBegin struct {
	CallID  string   `json:"call_id"`
	TurnID  string   `json:"turn_id,omitzero"`
	Command []string `json:"command"`
	// Cwd is the absolute folder that it runs in.
	Cwd string `json:"cwd"`
	// ParsedCmd are the parts of a shell script. Any other command has one part.
	ParsedCmd []ParsedCommand `json:"parsed_cmd"`
	// ReadOnly means that the engine confines the command so that it changes no file. Clients do not get it.
	ReadOnly bool `json:"-"`
}

// ExecCommandOutputDelta is a piece of a running command's output: Chunk was written to Stream, by the call CallID.
type ExecCommandOutputDelta struct {
	CallID string       `json:"call_id"`
	Stream OutputStream `json:"stream"`
	Chunk  []byte       `json:"chunk"`
}

// ExecCommandEnd says that the command of the call CallID of the turn TurnID ended, Duration after its start.
type ExecCommandEnd struct {
	CallID string `json:"call_id"`
	TurnID string `json:"turn_id,omitzero"`
	// Stdout and Stderr are the output of each stream. A long one is shortened.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	// AggregatedOutput is both streams in the order in which they arrived.
	AggregatedOutput string `json:"aggregated_output"`
	// ExitCode is the exit status, or 128 and more for a signal.
	ExitCode int `json:"exit_code"`
	// Status is [ExecDeclined] if the command has run in a sandbox at most, and its run outside was declined.
	// ExitCode is -1 then, which says nothing. "", which is left out, is any other end.
	Status   string   `json:"status,omitzero"`
	Duration Duration `json:"duration"`
	// FormattedOutput is what the model sees.
	FormattedOutput string `json:"formatted_output"`
	// Omitted is how many bytes AggregatedOutput leaves out, if the engine knows. It is
	// not part of the event.
	Omitted int64 `json:"-"`
	// Hosts are those of the network that the command has reached in the sandbox. They are not part of the event.
	Hosts []string `json:"-"`
}

// ExecDeclined is the status of a command whose run outside of a sandbox was declined.
const ExecDeclined = "declined"

// FileChange is a patch's effect on one file: exactly one of Add, Delete and Update, which may move it, is set.
type FileChange struct {
	Add    *FileContent `json:"add,omitzero"`
	Delete *FileContent `json:"delete,omitzero"`
	Update *FileUpdate  `json:"update,omitzero"`
}

// Kind returns "add", "delete" or "update".
func (c FileChange) Kind() string {
	switch {
	case c.Add != nil:
		return "add"
	case c.Delete != nil:
		return "delete"
	}
	return "update"
}

// MovedTo returns the path to which the change moves its file, or "".
func (c FileChange) MovedTo() string {
	if c.Update == nil || c.Update.MovePath == nil {
		return ""
	}
	return *c.Update.MovePath
}

// Replaces reports whether the change writes over another file, see [FileUpdate].
func (c FileChange) Replaces() bool { return c.Update != nil && c.Update.Replaces }

// Diff returns the change as lines, each after "+", "-" or " ", or a heading that begins with "@@". A file that is
// added or removed and has no line break at its end has a last line that begins with a backslash, as in a patch.
func (c FileChange) Diff() string {
	signed := func(sign, content string) string {
		if content == "" {
			return ""
		}
		body, ended := strings.CutSuffix(content, "\n")
		diff := sign + strings.ReplaceAll(body, "\n", "\n"+sign)
		if !ended {
			diff += "\n\\ No newline at end of file"
		}
		return diff
	}
	switch {
	case c.Add != nil:
		return signed("+", c.Add.Content)
	case c.Delete != nil:
		return signed("-", c.Delete.Content)
	case c.Update != nil:
		return c.Update.UnifiedDiff
	}
	return ""
}

// Lines returns how many lines the change adds and removes.
func (c FileChange) Lines() (added, removed int) {
	for line := range strings.Lines(c.Diff()) {
		switch line[0] {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	return added, removed
}

// FileContent is the whole Content of an added or deleted file.
type FileContent struct {
	Content string `json:"content"`
}

// FileUpdate is a change of a file, which may also move it.
type FileUpdate struct {
	// UnifiedDiff has hunks and no file header.
	UnifiedDiff string `json:"unified_diff"`
	// MovePath is the new path; nil, written as null, if the file is not moved.
	MovePath *string `json:"move_path"`
	// Replaces is true if the patch adds a file, or moves one, where another one is: at MovePath if the file is moved. UnifiedDiff
	// has the lines that are lost there, unless they cannot be shown or MovePath is set.
	Replaces bool `json:"replaces,omitzero"`
}

// PatchApplyBegin says that the call CallID of the turn TurnID is about to apply a patch: Changes, by absolute path.
type PatchApplyBegin struct {
	CallID string `json:"call_id"`
	TurnID string `json:"turn_id,omitzero"`
	// AutoApproved is true when no question was asked.
	AutoApproved bool                  `json:"auto_approved"`
	Changes      map[string]FileChange `json:"changes"`
}

// PatchApplyEnd reports whether the patch of the call CallID of the turn TurnID was applied.
type PatchApplyEnd struct {
	CallID string `json:"call_id"`
	TurnID string `json:"turn_id,omitzero"`
	// Stdout lists what was changed, and Stderr is why the patch was not applied.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	// Success is true when all of the patch was applied.
	Success bool `json:"success"`
}

// TurnDiff is everything that the turn has changed so far. UnifiedDiff is a diff of git, with a header for each file.
type TurnDiff struct {
	UnifiedDiff string `json:"unified_diff"`
}

// PlanStep is one step of a plan, with the text Step.
type PlanStep struct {
	Step string `json:"step"`
	// Status is "pending", "in_progress" or "completed".
	Status string `json:"status"`
}

// PlanUpdate is the model's Plan.
type PlanUpdate struct {
	// Explanation is nil, written as null, without one.
	Explanation *string    `json:"explanation"`
	Plan        []PlanStep `json:"plan"`
}

// MCPInvocation is a call of a Tool of a Server, by its name in the configuration.
type MCPInvocation struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
	// Arguments is a JSON object, left out if there are none.
	Arguments stdjson.RawMessage `json:"arguments,omitzero"`
}

// MCPToolCallBegin says that the MCP tool of an Invocation is being called, by the call CallID.
type MCPToolCallBegin struct {
	CallID     string        `json:"call_id"`
	Invocation MCPInvocation `json:"invocation"`
}

// MCPToolCallResult is a tool's result, or why there is none.
type MCPToolCallResult struct {
	Ok stdjson.RawMessage `json:"Ok,omitzero"`
	// Err is why there is no result; nil with an Ok.
	Err *string `json:"Err,omitzero"`
}

// MCPToolCallEnd says with which Result the Invocation of an MCP tool by the call CallID ended, after Duration.
type MCPToolCallEnd struct {
	CallID     string            `json:"call_id"`
	Invocation MCPInvocation     `json:"invocation"`
	Duration   Duration          `json:"duration"`
	Result     MCPToolCallResult `json:"result"`
}

// WebSearchBegin says that the provider searches the web. CallID ties the events of one call together.
type WebSearchBegin struct {
	CallID string `json:"call_id"`
}

// WebSearchEnd says what it searched for: Query is the text of the search CallID.
type WebSearchEnd struct {
	CallID string `json:"call_id"`
	Query  string `json:"query"`
}

// ViewImageToolCall says that an image was handed to the model: the file Path, by the call CallID.
type ViewImageToolCall struct {
	CallID string `json:"call_id"`
	Path   string `json:"path"`
}

// EventType implements [EventMsg].
func (ExecCommandBegin) EventType() string       { return "exec_command_begin" }
func (ExecCommandOutputDelta) EventType() string { return "exec_command_output_delta" }
func (ExecCommandEnd) EventType() string         { return "exec_command_end" }
func (PatchApplyBegin) EventType() string        { return "patch_apply_begin" }
func (PatchApplyEnd) EventType() string          { return "patch_apply_end" }
func (TurnDiff) EventType() string               { return "turn_diff" }
func (PlanUpdate) EventType() string             { return "plan_update" }
func (MCPToolCallBegin) EventType() string       { return "mcp_tool_call_begin" }
func (MCPToolCallEnd) EventType() string         { return "mcp_tool_call_end" }
func (WebSearchBegin) EventType() string         { return "web_search_begin" }
func (WebSearchEnd) EventType() string           { return "web_search_end" }
func (ViewImageToolCall) EventType() string      { return "view_image_tool_call" }
