package thread

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"runtime/debug"
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
	desk      approval.Desk
	log       *slog.Logger
	board     *board.Board
	stop      func() // interrupts the running turn
	stream    bool   // the engine is an [engine.Streamer]
	trail     *trail.Trail

	mu          sync.Mutex      // also keeps events in the order of Emit
	attended    Attendance      // of the running turn; between turns that of the last, unless it leaves
	event       string          // the submission id of the turn's events
	turnID      string          // of the running turn; between turns that of the last
	observer    TurnObserver    // of the running turn; nil without one
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
	}
	if interrupted {
		h.submit()
	}
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
	h.deliver(submission, m)
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

// ready waits, without the lock, until the watcher has room for the event m, so that the
// engine waits instead of piling up events. The wait ends with the turn.
func (h *host) ready(m protocol.EventMsg) {
	h.mu.Lock()
	w, turn := h.attended.Watcher, h.turn
	h.mu.Unlock()
	if w != nil && turn != nil {
		w.Ready(turn, m)
	}
}

// deliver sends an event to the watcher, the listeners, the trail, the observer and the
// desk, without waiting.
func (h *host) deliver(submission string, m protocol.EventMsg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m = stamp(m, h.turnID)
	e := protocol.Event{ID: cmp.Or(submission, h.event), Msg: m}
	if count, ok := m.(protocol.TokenCount); ok && count.Info != nil {
		h.used = &count.Info.TotalTokenUsage
	}
	configured, first := m.(protocol.SessionConfigured)
	if first {
		h.configured, e.ID = configured, ""
	}
	if w := h.attended.Watcher; w != nil {
		w.Event(h.configured.SessionID, e)
	}
	if !first { // listeners come later
		h.listeners.event(e, h.attended.Awaited)
	}
	h.trail.Event(m)
	if h.observer != nil {
		h.observer.Event(m)
	}
	h.show(h.configured.SessionID, m)
	if _, ok := m.(protocol.TaskStarted); ok && h.started != nil {
		close(h.started)
		h.started = nil
	}
}

// show reports an event to the desk.
func (h *host) show(id string, m protocol.EventMsg) {
	if h.desk == nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			h.log.Error("panic", "in", "Desk.Event", "value", v, "stack", string(debug.Stack()))
		}
	}()
	h.desk.Event(h.asThread(id), m)
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
	h.mu.Lock()
	watcher := h.attended.Watcher
	h.mu.Unlock()
	if watcher != nil {
		watcher.Notice(words)
	}
	h.deliver("", protocol.BackgroundEvent{Message: words})
}
