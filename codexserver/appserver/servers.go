package appserver

import (
	"fmt"
	"maps"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// servers are the MCP servers of a thread that have not started, by name. Codex starts them with the thread, and may
// say how that goes before it says that the thread begins.
type servers struct {
	why  map[string]string
	told map[string]string // what clients have read of that
}

// stillStarts is why the tools of a server are missing that has neither started nor failed when a turn ends.
const stillStarts = "it had not started when the turn ended"

// around matches what Codex says around the reason: the name once more, and names of its own code.
var around = lazyregexp.Regexp{Text: "(?s)^MCP client for `[^`]*` (?:failed to start: )?(?:MCP startup failed: )?" +
	`|(?:Send message error )?Transport \[[^\]]*\] error: |, when send initialize request(?:: .*)?$`}

// startup records how the start of an MCP server goes.
func (c *child) startup(n *apptypes.Note) {
	why := plain.OneLine(around.Get().ReplaceAllString(c.redact(lenient[string](n.Error)), ""), plain.MaxWords)
	switch {
	case n.Status == apptypes.MCPServerStartupStateStarting:
		why = stillStarts
	case n.Status == apptypes.MCPServerStartupStateCancelled:
		why = "its start was cancelled"
	case why == "":
		why = "it ended with the state " + plain.OneLine(n.Status, plain.MaxName)
	}
	if n.FailureReason == apptypes.MCPServerStartupFailureReasonReauthenticationRequired {
		why += "; sign in again with `codex mcp login " + plain.OneLine(n.Name, plain.MaxName) + "`"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.servers[n.ThreadID]
	if all == nil {
		all = &servers{why: map[string]string{}, told: map[string]string{}}
		c.servers[n.ThreadID] = all
	}
	if n.Status == apptypes.MCPServerStartupStateReady {
		delete(all.why, n.Name)
		delete(all.told, n.Name)
		return
	}
	all.why[n.Name] = why
}

// misses reports the MCP servers of the conversation that have not started, each once in a turn, and with words once as
// long as the reason stays. Over is true at the end of the turn, for those that still start. The turn's lock is held.
func (r *turn) misses(over bool) {
	for _, m := range r.thread.child.missing(r.thread.id, over) {
		if r.missing[m.Missing.Server] != m.Missing.Why {
			r.missing[m.Missing.Server] = m.Missing.Why
			r.host.Emit(m)
		}
	}
}

// missing returns the remarks of [turn.misses] for a thread.
func (c *child) missing(id string, over bool) (list []protocol.BackgroundEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.servers[id]
	if all == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(all.why)) {
		why := all.why[name]
		if why == stillStarts && !over {
			continue
		}
		m := protocol.BackgroundEvent{Missing: &protocol.Missing{Server: name, Why: why}}
		if all.told[name] != why {
			all.told[name] = why
			m.Message = fmt.Sprintf("the MCP server %s did not start, its tools are missing: %s", plain.Name(name), why)
		}
		list = append(list, m)
	}
	return list
}

// startupNoted reports, in a turn that runs, what was recorded of an MCP server.
func (r *turn) startupNoted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended && r.thread != nil {
		r.misses(false)
	}
}
