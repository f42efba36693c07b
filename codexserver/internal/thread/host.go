package thread

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/transcript"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/stack"
	"github.com/google/uuid"
)

// host is what the engine of one thread calls. It implements [engine.Host].
type host struct {
	log    *slog.Logger
	board  *approve.Board
	traits engine.Traits
	kept   *transcript.Log
	desk   approval.Desk // or nil

	mu          sync.Mutex // also keeps events in the order of Emit
	now         Attend     // of the running turn; between turns what remains of it, see end
	id          string     // of the running or the last turn
	idle        *turn.Turn // what happens between turns; nil until something does
	listeners   listeners
	submissions int // messages, approvals and interrupts so far
	configured  protocol.SessionConfigured
	thread      approval.Thread      // for desks; its id is "" before the thread has begun
	used        *protocol.TokenUsage // the engine's last count, or nil
}

var (
	_ engine.Host = (*host)(nil)
)

// begin makes a attend the turn that starts now. The caller must call leave at the end of the turn.
func (h *host) begin(a *Attend) (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now, h.id = *a, uuid.Must(uuid.NewV7()).String()
	if h.now.Submission == "" {
		h.now.Submission = h.submit()
	}
	if a.Ask == nil {
		return func() {}
	}
	return h.board.Attach(a.Ask)
}

// end counts the interrupt that ended the turn, if one did.
func (h *host) end(interrupted bool) {
	h.mu.Lock()
	thread, id, now := h.thread, h.id, h.turn()
	h.mu.Unlock()
	for _, line := range now.Unended() {
		h.board.Note(thread, id, line)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	rest := Attend{Submission: h.now.Submission} // not the call and its turn, which would stay in memory
	if !h.now.Leaves {
		rest.Client, rest.Elicit = h.now.Client, h.now.Elicit
	}
	h.now = rest
	if interrupted {
		h.submit()
	}
}

// turn returns the turn that events belong to. The caller holds h.mu.
func (h *host) turn() *turn.Turn {
	if h.now.Turn != nil {
		return h.now.Turn
	}
	if h.idle == nil {
		h.idle = turn.New(changes.Options{})
	}
	return h.idle
}

// doing returns what the running turn does now, "" between turns.
func (h *host) doing() string {
	h.mu.Lock()
	now := h.now.Turn
	h.mu.Unlock()
	if now == nil {
		return ""
	}
	return now.State().Line()
}

// submit counts one request to the thread, and returns its id.
func (h *host) submit() string {
	id := strconv.Itoa(h.submissions)
	h.submissions++
	return id
}

// Emit implements [engine.Host].
func (h *host) Emit(m protocol.EventMsg) { h.EmitAs("", m) }

// EmitAs implements [engine.Host].
func (h *host) EmitAs(submission string, m protocol.EventMsg) {
	if !h.traits.Streams && !ends(m) {
		h.ready(m)
	}
	h.deliver(submission, m, "")
}

// ends reports whether an event ends a turn that was aborted or failed. Such an event does
// not wait for the watcher.
func ends(m protocol.EventMsg) bool {
	switch m.(type) {
	case protocol.TurnAborted, protocol.Error, protocol.ShutdownComplete:
		return true
	}
	return false
}

// ready waits, without the lock, until the turn has seen its folder as it was before the event m, and
// the client has room for it, so that the engine waits instead of piling up events. The wait ends with the turn.
func (h *host) ready(m protocol.EventMsg) {
	h.mu.Lock()
	client, now := h.now.Client, h.now.Turn
	h.mu.Unlock()
	if now == nil {
		return
	}
	ctx := now.Context()
	if ctx == nil { // the thread begins
		return
	}
	now.Ready(m)
	if client != nil {
		client.Ready(ctx)
	}
}

// deliver has the turn read an event, and sends it to all that hear the thread, without waiting for them. It returns it
// with the name of its turn. What the record has of it is there before.
func (h *host) deliver(submission string, m protocol.EventMsg, notice string) protocol.EventMsg {
	h.mu.Lock()
	thread, id, now := h.thread, h.id, h.turn()
	step := now.Add(id, h.kept, m)
	if line := step.Line; line != nil {
		h.mu.Unlock() // it may write a file
		line.DecisionID = cmp.Or(h.board.Note(thread, id, *line), line.DecisionID)
		now.Ruled(line)
		h.mu.Lock()
	}
	defer h.mu.Unlock()
	m = step.Event
	e := Event{Event: protocol.Event{ID: cmp.Or(submission, h.now.Submission), Msg: m}, Notice: notice}
	if step.Doing != "" {
		e.Turn = now
	}
	switch m := m.(type) {
	case protocol.TokenCount:
		if m.Info != nil {
			h.used = &m.Info.TotalTokenUsage
		}
	case protocol.SessionConfigured:
		h.configured, h.thread.ID, e.ID = m, m.SessionID, ""
	}
	e.Thread = h.thread
	if h.now.Client != nil {
		h.now.Client.Event(e)
	}
	h.listeners.event(e)
	h.tell(h.now.metrics, e.Thread, e.Msg)
	return e.Msg
}

// show reports an event only to the desk and the observer of the call.
func (h *host) show(m protocol.EventMsg) {
	h.mu.Lock()
	metrics, thread := h.now.metrics, h.thread
	h.mu.Unlock()
	h.tell(metrics, thread, m)
}

// tell reports an event to the observer of the call, unless nil, and to the desk. A panic of the desk is logged.
func (h *host) tell(metrics TurnObserver, t approval.Thread, m protocol.EventMsg) {
	if metrics != nil {
		metrics.Event(m)
	}
	if h.desk != nil {
		_ = stack.Guard(h.log, "Desk.Event", func() error { h.desk.Event(t, m); return nil })
	}
}

// say tells the client of the running turn something that is no event.
func (h *host) say(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now.Client != nil {
		h.now.Client.Event(e)
	}
}

// asks tells the client of the running turn that a person is asked.
func (h *host) asks() {
	h.mu.Lock()
	now := h.turn()
	h.mu.Unlock()
	h.say(Event{Turn: now})
}

// Elicit implements [engine.Host].
func (h *host) Elicit(ctx context.Context, f *approval.Foreign) (json.RawMessage, error) {
	h.mu.Lock()
	send, denied := h.now.Elicit, h.now.Denied
	h.mu.Unlock()
	if send == nil || denied != "" {
		return nil, elicit.ErrUnsupported
	}
	return send(ctx, f)
}

// invite sends the message of a desk about how to reach it. Where says where the open questions
// can be answered if a client answers by itself.
func (h *host) invite(words, where string) {
	if where != "" {
		h.mu.Lock()
		now := h.turn()
		h.mu.Unlock()
		now.AnsweredAt(where)
	}
	h.deliver("", protocol.BackgroundEvent{Message: words}, words)
}
