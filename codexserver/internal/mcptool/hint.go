package mcptool

import (
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/report"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// Hint says which results have a text block that names the thread and says how to go on.
// Without it a model that sees only the texts of a result cannot continue the conversation.
type Hint string

// The hints. The zero value is [HintAuto].
const (
	HintAuto   Hint = "auto" // unless the client is known to show structured content to its model
	HintAlways Hint = "always"
	HintNever  Hint = "never"
)

// structuredHosts are the clients, by the name in their clientInfo, whose models see the
// structured content of every result that is not an error. docs/clients.md has the
// measurements.
var structuredHosts = []string{"claude-code", "codex-mcp-client"}

// wanted reports whether the results for a client have the block.
func (h Hint) wanted(client string) bool {
	switch h {
	case HintAlways:
		return true
	case HintNever:
		return false
	}
	return !slices.Contains(structuredHosts, client)
}

// hint adds the block to the result of a turn that ended without an error. Results of errors
// have the same facts, see [facts].
func hint(r *mcptypes.CallToolResult, did *report.Report) {
	words := "thread " + did.ThreadID + "; codex-reply continues it"
	if changed := did.Changed(); changed != "" {
		words += "; changed: " + changed
	}
	addHint(r, words)
}

func addHint(r *mcptypes.CallToolResult, words string) {
	r.Content = append(r.Content, forModel("["+words+"]"))
}
