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
	"github.com/google/uuid"
)

// host is what the engine of one thread calls. It implements [engine.Host].
type host struct {
	log    *slog.Logger
	board  *approve.Board
	traits engine.Traits
	kept   *transcript.Log
	desk   desk

	mu          sync.Mutex // also keeps events in the order of Emit
	now         hostTurn
	idle        *turn.Turn   // what happens between turns; nil until something does
	metrics     TurnObserver // of the turn, or nil
	listeners   listeners
	submissions int // messages, approvals and interrupts so far
	configured  protocol.SessionConfigured
	thread      approval.Thread      // for desks; its id is "" before the thread has begun
	used        *protocol.TokenUsage // the engine's last count, or nil
}

// hostTurn is the running turn for its host. Between turns it is what remains of the last one, see
// [host.end].
type hostTurn struct {
	Attend
	ctx     context.Context // nil between turns
	id      string
	started chan struct{} // closed at the turn's task_started; nil from then on
}

var (
	_ engine.Host = (*host)(nil)
)

// begin makes a attend the turn that starts now. The turn ends with ctx at the latest.
// started is closed when the engine reports the start. The caller must call leave at the
// end of the turn.
func (h *host) begin(ctx context.Context, a *Attend, started chan struct{}) (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = hostTurn{Attend: *a, ctx: ctx, id: uuid.Must(uuid.NewV7()).String(), started: started}
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
	thread, id, now := h.thread, h.now.id, h.turn()
	h.mu.Unlock()
	for _, line := range now.Unended() {
		h.board.Note(thread, id, line)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.ctx = nil
	rest := Attend{Awaited: h.now.Awaited, Submission: h.now.Submission} // not the call and its turn, which would stay in memory
	if !h.now.Leaves {
		rest.Client, rest.Elicit = h.now.Client, h.now.Elicit
	}
	h.now.Attend = rest
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

// observe makes o observe the turn. Nil ends that.
func (h *host) observe(o TurnObserver) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.metrics = o
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
	if line := turn.LineOf(m); line.Event != "" {
		h.mu.Lock()
		thread, id, now := h.thread, h.now.id, h.turn()
		h.mu.Unlock()
		now.Note(&line)
		h.board.Note(thread, id, line) // without the lock, because it may write a file
	}
	h.deliver(submission, m, false)
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
	client, turn, work := h.now.Client, h.now.ctx, h.now.Turn
	h.mu.Unlock()
	if turn == nil {
		return
	}
	if work != nil {
		work.Ready(m)
	}
	if client != nil {
		client.Ready(turn, m)
	}
}

// deliver sends an event to all that hear the thread, without waiting, and returns it with the name of its turn.
func (h *host) deliver(submission string, m protocol.EventMsg, notice bool) protocol.EventMsg {
	h.mu.Lock()
	defer h.mu.Unlock()
	m, doing := h.turn().Add(h.now.id, h.kept.Add(m), m)
	e := Event{Event: protocol.Event{ID: cmp.Or(submission, h.now.Submission), Msg: m}, Notice: notice, Doing: doing}
	switch m := m.(type) {
	case protocol.TokenCount:
		if m.Info != nil {
			h.used = &m.Info.TotalTokenUsage
		}
	case protocol.SessionConfigured:
		h.configured, h.thread.ID, e.ID = m, m.SessionID, ""
	case protocol.TaskStarted:
		if h.now.started != nil {
			defer close(h.now.started)
			h.now.started = nil
		}
	}
	e.Thread = h.thread
	if h.now.Client != nil {
		h.now.Client.Event(e)
	}
	h.listeners.event(e, h.now.Awaited)
	if h.metrics != nil {
		h.metrics.Event(e.Msg)
	}
	h.desk.event(e.Thread, e.Msg)
	return e.Msg
}

// show reports an event only to the desk and the observer of the call.
func (h *host) show(m protocol.EventMsg) {
	h.mu.Lock()
	metrics, thread := h.metrics, h.thread
	h.mu.Unlock()
	if metrics != nil {
		metrics.Event(m)
	}
	h.desk.event(thread, m)
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
	h.deliver("", protocol.BackgroundEvent{Message: words}, true)
}
