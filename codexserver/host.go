package codexserver

import (
	"cmp"
	"context"
	"strconv"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// host is the server's side of one conversation: it sends the engine's events
// to whoever listens and its questions to whoever asked for the turn. It
// implements [engine.Host].
type host struct {
	session *session

	mu          sync.Mutex // also keeps events in the order of Emit
	asker       asker      // who asked for the turn; the last one between turns
	event       string     // the submission id of the turn's events
	turnID      string     // of the turn under way; the last one's between turns
	failed      bool       // the turn's error event was sent
	submissions int        // messages, approvals and interrupts so far
	configured  protocol.SessionConfigured
	listeners   listeners
}

// asker is who asked for a turn: a tool's caller or the sender of a message.
type asker interface {
	// submission is the id of the turn's events; "" takes the conversation's next.
	submission() string
	// event gets every event of the turn.
	event(h *host, e protocol.Event)
	// ask puts a question about r to the client.
	ask(ctx context.Context, h *host, q *elicit.Question, r protocol.EventMsg) elicit.Outcome
	// excuse is told why the client could not be asked.
	excuse(reason string)
}

// begin makes a the one that gets the events of the turn that starts now.
func (h *host) begin(a asker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asker, h.failed = a, false
	h.turnID = newTurnID()
	if h.event = a.submission(); h.event == "" {
		h.event = h.submit()
	}
}

// end counts the interrupt that ended the turn, if one did.
func (h *host) end(interrupted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if interrupted {
		h.submit()
	}
}

// submit counts one thing that the conversation was told, and names it.
func (h *host) submit() string {
	id := strconv.Itoa(h.submissions)
	h.submissions++
	return id
}

// Emit implements engine.Host.
func (h *host) Emit(m protocol.EventMsg) { h.EmitAs("", m) }

// EmitAs implements engine.Submitter.
func (h *host) EmitAs(submission string, m protocol.EventMsg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m = stamp(m, h.turnID)
	e := protocol.Event{ID: cmp.Or(submission, h.event), Msg: m}
	switch m := m.(type) {
	case protocol.SessionConfigured:
		h.configured = m
		e.ID = ""
		h.asker.event(h, e)
		h.tell(h.configured.SessionID, m)
		return // listeners come later
	case protocol.Error:
		h.failed = true
	}
	h.asker.event(h, e)
	h.listeners.event(h, e)
	h.tell(h.configured.SessionID, m)
}

// thread is the conversation's id.
func (h *host) thread() string { return h.info().SessionID }

// info is what the engine said of the conversation when it began.
func (h *host) info() protocol.SessionConfigured {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.configured
}

// turn is who asked for the turn under way, and the id of its events.
func (h *host) turn() (asker, string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asker, h.event
}
