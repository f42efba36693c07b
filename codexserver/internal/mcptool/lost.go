package mcptool

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/report"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Broken returns the result of a call whose tool panicked.
func Broken() *mcptypes.CallToolResult { return failure("", "internal error: the tool panicked") }

// Ended returns the result of a task whose server ended while the task ran, and what it did as
// a line. did is what [Job.Did] returned last, or nil.
func Ended(thread string, did jsontext.Value) (r *mcptypes.CallToolResult, line string) {
	line = doneBefore(did)
	words := "The server ended while this task ran. What it did until then remains"
	if line != "" {
		words += ": " + line
	}
	words += ". Call codex-reply with threadId " + thread + " to continue."
	var members map[string]jsontext.Value
	if line == "" || json.Unmarshal(did, &members) != nil {
		return failure(thread, words), line
	}
	members["content"] = quote(nil, words)
	structured, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return failure(thread, words), line
	}
	r = &mcptypes.CallToolResult{Content: blocks(words), StructuredContent: structured, IsError: new(true)}
	forModel(r, string(did))
	return r, line
}

// doneBefore returns how many commands ran and how many files changed; "" if did is not a
// report.
func doneBefore(did jsontext.Value) string {
	var r struct {
		Changes   []jsontext.Value `json:"changes"`
		Commands  []jsontext.Value `json:"commands"`
		Truncated struct {
			Changes  int `json:"changes"`
			Commands int `json:"commands"`
		} `json:"truncated"`
	}
	if json.Unmarshal(did, &r) != nil {
		return ""
	}
	return many(len(r.Commands)+r.Truncated.Commands, "command") + " ran and " + many(len(r.Changes)+r.Truncated.Changes, "file") + " changed"
}

// many returns a number with a noun.
func many(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Did returns what the turn has done until now, as the JSON of a turn that was aborted. It has
// no content and at most [report.MinLimit] bytes.
func (j *Job) Did() jsontext.Value {
	r := j.report.Report()
	r.ThreadID, r.Content = j.ThreadID(), ""
	switch r.Status {
	case "", turnlog.Running, turnlog.Waiting:
		r.Status = turnlog.Aborted
	}
	return r.JSON(report.MinLimit)
}
