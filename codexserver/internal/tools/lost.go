package tools

import (
	"fmt"

	"github.com/codexmcp/codexmcp/mcptypes"
)

// Lost is the result of a call that waited for an answer when the server was
// restarted. The process is the one that served it, 0 when that has ended; the
// thread is "" of a call without one.
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

// Broken is the result of a call that failed by a fault of the server.
func Broken() *mcptypes.CallToolResult { return failure("", "internal error: the tool panicked") }

// Ended is the result of a task whose server ended while it ran.
func Ended(thread string) *mcptypes.CallToolResult {
	return failure(thread, "The server ended while this task ran. What it did until then remains. Call codex-reply with threadId "+thread+" to continue.")
}
