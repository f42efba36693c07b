package appserver

import (
	"sync/atomic"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// successor is the host of a conversation that another engine goes on with. Its events are those of
// the conversation, which had begun, and so had the turn if it joins one.
type successor struct {
	engine.Host
	before  string                  // what Codex's provider said
	policy  protocol.ApprovalPolicy // of the other engine
	reroute protocol.ModelReroute

	own atomic.Bool // the turn is not the rest of one that had begun in Codex
}

// failure returns the words of a turn that failed.
func (h *successor) failure(words string) string {
	if !h.own.Load() {
		words += "\nBefore, Codex ended with: " + h.before
	}
	return words
}

// Emit implements [engine.Host].
func (h *successor) Emit(m protocol.EventMsg) { h.EmitAs("", m) }

// EmitAs implements [engine.Host].
func (h *successor) EmitAs(submission string, m protocol.EventMsg) {
	switch m := m.(type) {
	case protocol.SessionConfigured:
		h.policy = m.ApprovalPolicy // before Resume returns
	case protocol.TaskStarted:
		if h.own.Load() {
			h.Host.EmitAs(submission, m)
		}
		h.Host.EmitAs(submission, h.reroute)
	case protocol.Error:
		h.Host.EmitAs(submission, protocol.Error{Message: h.failure(m.Message)})
	default:
		h.Host.EmitAs(submission, m)
	}
}

// Alive implements [engine.Watcher].
func (h *successor) Alive() { engine.Alive(h.Host) }
