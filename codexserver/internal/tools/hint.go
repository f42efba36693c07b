package tools

import (
	"github.com/codexmcp/codexmcp/codexserver/internal/show"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// maxHints is how many threads one block names. Some hosts show 2 kB of a block.
const maxHints = 20

// hint returns a line that names a thread for the client's model, and says what to call next. Without it a
// model that sees only the texts of a result could not continue the conversation.
// did is what the turn did, or nil before its end. more is true if codex-show has more of the
// answer.
func hint(thread string, did *protocol.TurnResult, more bool) string {
	if did == nil {
		return "[thread " + thread + "; codex-wait waits for it]"
	}
	words := "thread " + thread + "; codex-reply continues it"
	if more {
		words += "; codex-show has the whole answer"
	}
	if changed := show.Changes(did.Changes); changed != "" {
		words += "; changed: " + changed
	}
	return "[" + words + "]"
}
