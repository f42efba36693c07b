package tools

import (
	"fmt"

	"github.com/codexmcp/codexmcp/mcptypes"
)

// Lost returns the result of a call that waited for an answer when the server was
// restarted. Process is the one that served the call, or 0 if it has ended. Thread is "" if
// the call has none.
func Lost(thread string, process int) *mcptypes.CallToolResult {
	next := "call codex-reply with threadId " + thread + " to continue."
	if thread == "" {
		next = "call codex-reply to continue a conversation."
	}
	if process != 0 {
		return failure(thread, fmt.Sprintf("Another server, process %d, serves this call: only there can its question be answered. "+
			"Nothing was done here. When that server was restarted, %s", process, next))
	}
	return failure(thread, "The server was restarted while this call waited for an answer. What was asked for did not run. C"+next[1:])
}

// Broken returns the result of a call whose tool panicked.
func Broken() *mcptypes.CallToolResult { return failure("", "internal error: the tool panicked") }

// Ended returns the result of a task whose server ended while the task ran.
func Ended(thread string) *mcptypes.CallToolResult {
	return failure(thread, "The server ended while this task ran. What it did until then remains. Call codex-reply with threadId "+thread+" to continue.")
}
