package mcptool

import "github.com/codexmcp/codexmcp/codexserver/internal/report"

// hints reports whether results have a text block that names the thread and says how to go on. Without it a model that
// sees only the texts of a result cannot continue the conversation; one that sees the structured content in place of the
// texts does not see it.
func (o *Options) hints() bool { return o.Hint != "never" }

// maxHints is how many threads one block names. Some hosts show 2 kB of a block.
const maxHints = 20

// hint returns a line that names a thread for the client's model, and says what to call next.
// did is what the turn did, or nil before its end. more is true if codex-show has more of the
// answer.
func hint(thread string, did *report.Report, more bool) string {
	if did == nil {
		return "[thread " + thread + "; codex-wait waits for it]"
	}
	words := "thread " + thread + "; codex-reply continues it"
	if more {
		words += "; codex-show has the whole answer"
	}
	if changed := did.Changes.Paths(); changed != "" {
		words += "; changed: " + changed
	}
	return "[" + words + "]"
}
