package mcptool

import (
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/report"
)

// structuredHosts are the clients, by the name in their clientInfo, whose models see the
// structured content of every result that is not an error, in place of its texts.
// docs/reference/turns.md says how that is known, and why other hosts are not here.
var structuredHosts = []string{"claude-code", "codex-mcp-client", "Visual Studio Code", "Visual Studio Code - Insiders"}

// hints reports whether the results for a client have a text block that names the thread and says
// how to go on. Without it a model that sees only the texts of a result cannot continue the
// conversation.
func (o *Options) hints(client string) bool {
	switch o.Hint {
	case "always":
		return true
	case "never":
		return false
	}
	return !slices.Contains(structuredHosts, client)
}

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
