package thread

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/trail"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// host is what the engine of one thread calls. It implements [engine.Host].
type host struct {
	server    string // the id of the server, for desks
	principal string // the owner of the thread; "" if the server has one user
	log       *slog.Logger
	board     *board.Board
	stop      func() // interrupts the running turn
	stream    bool   // the engine is an [engine.Streamer]
	trail     *trail.Trail
	desk      deskObserver

	mu          sync.Mutex      // also keeps events in the order of Emit
	attended    Attendance      // of the running turn; between turns that of the last, unless it leaves
	event       string          // the submission id of the turn's events
	turnID      string          // of the running turn; between turns that of the last
	observers   []Observer      // of the running turn and the thread; replaced, not changed
	turn        context.Context // of the running turn; nil between turns
	started     chan struct{}   // closed at the running turn's task_started; nil from then on
	denied      string          // why all questions of the running turn are denied; "" asks
	submissions int             // messages, approvals and interrupts so far
	configured  protocol.SessionConfigured
	used        *protocol.TokenUsage // the engine's last count, or nil
	listeners   listeners
}

var _ engine.Host = (*host)(nil)

// begin makes a attend the turn that starts now. The turn ends with ctx at the latest.
// started is closed when the engine reports the start. The caller must call leave at the
// end of the turn.
func (h *host) begin(ctx context.Context, a Attendance, started chan struct{}) (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attended, h.turn, h.started = a, ctx, started
	h.list()
	h.turnID = newTurnID()
	if h.event = a.Submission; h.event == "" {
		h.event = h.submit()
	}
	if a.Place == nil {
		return func() {}
	}
	return h.board.Attach(a.Place)
}

// end counts the interrupt that ended the turn, if one did.
func (h *host) end(interrupted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.turn = nil
	if h.attended.Leaves {
		h.attended = Attendance{Awaited: h.attended.Awaited}
		h.list()
	}
	if interrupted {
		h.submit()
	}
}

// observe makes the attendance, others and the thread observe the thread.
func (h *host) observe(others ...Observer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list(others...)
}

// list sets the observers in the order in which they receive an event. The caller holds h.mu.
func (h *host) list(others ...Observer) {
	h.listeners.awaited = h.attended.Awaited
	h.observers = slices.Concat(h.attended.Observers, []Observer{&h.listeners, trailObserver{Trail: h.trail}}, others, []Observer{h.desk})
}

// deny makes every question of the running turn denied without asking. "" ends that.
func (h *host) deny(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.denied = why
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
	if !h.stream && !ends(m) {
		h.ready(m)
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

// ready waits, without the lock, until the observers have room for the event m, so that the
// engine waits instead of piling up events. The wait ends with the turn.
func (h *host) ready(m protocol.EventMsg) {
	h.mu.Lock()
	observers, turn := h.observers, h.turn
	h.mu.Unlock()
	if turn == nil {
		return
	}
	for _, o := range observers {
		if w, ok := o.(Waiter); ok {
			w.Ready(turn, m)
		}
	}
}

// deliver sends an event to the observers, without waiting.
func (h *host) deliver(submission string, m protocol.EventMsg, notice bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m = stamp(m, h.turnID)
	e := Event{Event: protocol.Event{ID: cmp.Or(submission, h.event), Msg: m}, Notice: notice}
	switch m := m.(type) {
	case protocol.TokenCount:
		if m.Info != nil {
			h.used = &m.Info.TotalTokenUsage
		}
	case protocol.SessionConfigured:
		h.configured, e.ID = m, ""
	case protocol.TaskStarted:
		if h.started != nil {
			defer close(h.started)
			h.started = nil
		}
	}
	e.Thread = h.asThread(h.configured.SessionID)
	for _, o := range h.observers {
		o.Event(e)
	}
}

// show reports an event only to the desk.
func (h *host) show(id string, m protocol.EventMsg) {
	h.desk.Event(Event{Event: protocol.Event{Msg: m}, Thread: h.asThread(id)})
}

// asThread describes the thread for desks.
func (h *host) asThread(id string) approval.Thread {
	return approval.Thread{ID: id, Server: h.server, Principal: h.principal, Stop: h.stop}
}

// move records the working folder that a turn changes.
func (h *host) move(c *protocol.TurnContext) {
	if c == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.configured.Cwd = c.Cwd
}

// info returns the engine's description of the thread when it began, with its current folder.
func (h *host) info() protocol.SessionConfigured {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.configured
}

// Elicit implements [engine.Host].
func (h *host) Elicit(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	h.mu.Lock()
	send, denied := h.attended.Elicit, h.denied
	h.mu.Unlock()
	if send == nil || denied != "" {
		return nil, elicit.ErrUnsupported
	}
	return send(ctx, params)
}

// invite sends the message of a desk about how to reach it.
func (h *host) invite(words string) {
	h.deliver("", protocol.BackgroundEvent{Message: words}, true)
}
