package thread

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/stack"
	"github.com/google/uuid"
)

var _ engine.Host = (*Thread)(nil)

// begins gives the thread to the turn of a seat, which is the first. The caller must call leave at the end of the turn.
func (t *Thread) begins(q *seat, metrics TurnObserver) (leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q.begun, q.id, q.metrics = true, uuid.Must(uuid.NewV7()).String(), metrics
	if q.Submission == "" {
		q.Submission = t.submit()
	}
	t.board.AskInTurn(q.InTurn)
	if q.Ask == nil {
		return func() {}
	}
	return t.board.Attach(q.Ask)
}

// ends takes the thread from the turn of a seat. It counts the interrupt that ended the turn, if one did.
func (t *Thread) ends(q *seat, interrupted bool) {
	t.mu.Lock()
	about := t.about
	t.mu.Unlock()
	for _, line := range q.Turn.Unended() {
		t.board.Note(about, q.id, line)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	q.begun = false
	// The call and its turn would stay in memory.
	t.rest = &seat{id: q.id, Attend: Attend{Submission: q.Submission}}
	if interrupted {
		t.submit()
	}
}

// now returns the seat of the running turn, or what remains of it between turns, with a turn for what comes then. The caller
// holds t.mu.
func (t *Thread) now() *seat {
	if q := t.queue.running(); q != nil {
		return q
	}
	if t.rest.Turn == nil {
		t.rest.Turn = turn.New(changes.Options{})
	}
	return t.rest
}

// attended returns who attends the turn that events belong to, with the turn.
func (t *Thread) attended() Attend {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now().Attend
}

// doing returns what the first turn does now, "" between turns. A desk may call it that hears an event.
func (t *Thread) doing() string {
	q := t.first.Load()
	if q == nil || q.closing {
		return ""
	}
	return q.Turn.State().Line()
}

// submit counts one request to the thread, and returns its id.
func (t *Thread) submit() string {
	return strconv.FormatInt(t.submissions.Add(1)-1, 10)
}

// Emit implements [engine.Host].
func (t *Thread) Emit(m protocol.EventMsg) { t.EmitAs("", m) }

// EmitAs implements [engine.Host].
func (t *Thread) EmitAs(submission string, m protocol.EventMsg) {
	if !t.traits.Streams && !isEnd(m) {
		t.ready(m)
	}
	t.deliver(submission, m, "")
}

// isEnd reports whether an event ends a turn that was aborted or failed. Such an event does
// not wait for the watcher.
func isEnd(m protocol.EventMsg) bool {
	switch m.(type) {
	case protocol.TurnAborted, protocol.Error, protocol.ShutdownComplete:
		return true
	}
	return false
}

// ready waits, without the lock, until the turn has seen its folder as it was before the event m, and
// the client has room for it, so that the engine waits instead of piling up events. The wait ends with the turn.
func (t *Thread) ready(m protocol.EventMsg) {
	attend := t.attended()
	ctx := attend.Turn.Context()
	if ctx == nil { // no turn runs
		return
	}
	attend.Turn.Ready(m)
	if attend.Client != nil {
		attend.Client.Ready(ctx)
	}
}

// deliver has the turn read an event, and sends it to all that hear the thread, without waiting for them. It returns it
// with the name of its turn. What the record has of it is there before.
func (t *Thread) deliver(submission string, m protocol.EventMsg, notice string) protocol.EventMsg {
	t.mu.Lock()
	about, seat := t.about, t.now()
	step := seat.Turn.Add(seat.id, t.kept, m)
	if line := step.Line; line != nil {
		t.mu.Unlock() // it may write a file
		line.DecisionID = cmp.Or(t.board.Note(about, seat.id, *line), line.DecisionID)
		seat.Turn.Ruled(line)
		t.mu.Lock()
	}
	defer t.mu.Unlock()
	m = step.Event
	if seat.holds(m) {
		return m
	}
	e := Event{Event: protocol.Event{ID: cmp.Or(submission, seat.Submission), Msg: m}, Notice: notice}
	if step.Doing != "" {
		e.Turn = seat.Turn.First()
	}
	switch m := m.(type) {
	case protocol.TokenCount:
		if m.Info != nil {
			t.used = &m.Info.TotalTokenUsage
		}
	case protocol.SessionConfigured:
		t.configured, t.about.ID, e.ID = m, m.SessionID, ""
	}
	e.Thread = t.about
	if seat.Client != nil {
		seat.Client.Event(e)
	}
	t.listeners.event(e)
	t.tell(e.Msg)
	return e.Msg
}

// show reports an event only to the desk and the observer of the call.
func (t *Thread) show(m protocol.EventMsg) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tell(m)
}

// tell is show for a caller that holds t.mu. A panic of the desk is logged.
func (t *Thread) tell(m protocol.EventMsg) {
	if metrics := t.now().metrics; metrics != nil {
		metrics.Event(m)
	}
	if desk := t.table.approvals.Desk; desk != nil {
		_ = stack.Guard(t.table.log, "Desk.Event", func() error { desk.Event(t.about, m); return nil })
	}
}

// say tells the client of the running turn something that is no event.
func (t *Thread) say(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now().Client != nil {
		t.now().Client.Event(e)
	}
}

// asksPerson tells the client of the running turn that a person is asked.
func (t *Thread) asksPerson() { t.say(Event{Turn: t.attended().Turn.First()}) }

// Elicit implements [engine.Host].
func (t *Thread) Elicit(ctx context.Context, f *approval.Foreign) (json.RawMessage, error) {
	attend := t.attended()
	if attend.Elicit == nil || attend.Review != "" {
		return nil, elicit.ErrUnsupported
	}
	leave, err := attend.InTurn.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return attend.Elicit(ctx, f)
}

// invite sends the message of a desk about how to reach it. Where says where the open questions
// can be answered if a client answers by itself.
func (t *Thread) invite(words, where string) {
	if where != "" {
		t.attended().Turn.AnsweredAt(where)
	}
	t.deliver("", protocol.BackgroundEvent{Message: words}, words)
}
