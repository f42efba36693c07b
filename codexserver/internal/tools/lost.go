package tools

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Broken returns the result of a call whose tool panicked.
func Broken() *mcptypes.CallToolResult { return failure("", "internal error: the tool panicked") }

// Ended returns the result of a task whose server ended while the task ran, and what it did as
// a line. did is what [Job.Did] returned last, or nil.
func Ended(thread string, did jsontext.Value) (r *mcptypes.CallToolResult, line string) {
	words := "The server ended while this task ran. What it did until then remains"
	var before protocol.TurnResult
	known := json.Unmarshal(did, &before) == nil
	if known {
		line = doneUntil(&before)
		words += ": " + line
	}
	words += ". Call codex-reply with threadId " + thread + " to continue."
	if !known {
		return failure(thread, words), line
	}
	before.Content = words
	r = &mcptypes.CallToolResult{Content: blocks(words), StructuredContent: before.JSON(setting.DefaultResult), IsError: new(true)}
	forModel(r, string(did))
	return r, line
}

// doneUntil returns how many commands ran and how many files changed.
func doneUntil(r *protocol.TurnResult) string {
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
// no content and at most [protocol.MinResult] bytes.
func (j *Job) Did() jsontext.Value {
	r := j.log.So()
	r.ThreadID, r.Content = j.ThreadID(), ""
	if r.Status == "" || !r.Status.Ended() {
		r.Status = protocol.StatusAborted
	}
	return r.JSON(protocol.MinResult)
}
