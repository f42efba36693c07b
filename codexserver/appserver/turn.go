package appserver

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

const (
	// interruptGrace is how long an interrupted turn is waited for before its
	// caller is told that it is over.
	interruptGrace = 900 * time.Millisecond
	// interruptLimit is how long it may then still take to end. An app-server
	// that takes longer hangs and is killed: what was interrupted must not go on.
	interruptLimit = 10 * time.Second
	// holdBack is how long the event that begins an item waits for a question
	// about it. The app-server asks within milliseconds.
	holdBack = 200 * time.Millisecond
)

// running is a turn from its start to its end.
type running struct {
	thread *loaded
	host   engine.Host
	ctx    context.Context // ends when the turn does
	cancel context.CancelCauseFunc
	asking chan struct{} // holds one token while a question is open

	known     chan struct{} // closed when id is
	completed chan struct{} // closed when the turn has ended over there
	cleared   chan struct{} // closed when an interrupt has left nothing running

	mu       sync.Mutex // also keeps the events in order
	id       string
	result   *turn // what turn/completed said
	ended    bool  // nothing is emitted any more
	aborted  error // why the client ended the turn; no further question is asked then
	tr       *translator
	timers   map[string]*time.Timer            // of items whose beginning is held back
	open     map[jsonrpc.ID]context.CancelFunc // questions being asked
	resolved map[jsonrpc.ID]bool               // those that were over before they were asked
	agents   map[string]string                 // the turns of sub-agents by thread, "" where it has ended
}

// newRunning makes a turn. Its context ends with ctx at the latest.
func newRunning(ctx context.Context, t *loaded, host engine.Host) *running {
	r := &running{
		thread: t, host: host, asking: make(chan struct{}, 1),
		known: make(chan struct{}), completed: make(chan struct{}), cleared: make(chan struct{}),
		tr: newTranslator(), timers: map[string]*time.Timer{},
		open: map[jsonrpc.ID]context.CancelFunc{}, resolved: map[jsonrpc.ID]bool{},
		agents: map[string]string{},
	}
	r.tr.limits = t.child.lastLimits(time.Now())
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	return r
}

var errTurnEnded = errors.New("the turn has ended")

// named notes the turn's id, from the answer or from turn/started, whichever
// comes first.
func (r *running) named(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.id == "" && id != "" {
		r.id = id
		close(r.known)
	}
}

// name is the turn's id, "" before it is known.
func (r *running) name() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.id
}

// complete notes that the turn has ended over there; nil says that it never began.
func (r *running) complete(t *turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.completed:
	default:
		r.result = t
		close(r.completed)
	}
}

// finish ends the turn for everybody here: it emits the last events, and ends
// the questions that are open.
func (r *running) finish(last []protocol.EventMsg) {
	r.mu.Lock()
	r.ended = true
	for _, timer := range r.timers {
		timer.Stop()
	}
	for _, e := range last {
		r.host.Emit(e)
	}
	r.mu.Unlock()
	r.cancel(errTurnEnded)
	r.thread.leave(r)
}

// translate emits the events of one notification, of the thread itself or of a
// sub-agent's.
func (r *running) translate(method string, n *note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	events, err := r.tr.notification(method, n)
	if err != nil {
		r.thread.child.log.Warn("codex: notification not understood", "method", method, "error", err)
		return
	}
	for _, e := range events {
		r.host.Emit(e)
	}
	if method != "item/started" {
		return
	}
	for id, o := range r.tr.open {
		if o.held && r.timers[id] == nil {
			r.timers[id] = time.AfterFunc(holdBack, func() { r.release(id, false) })
		}
	}
}

// release emits the event that begins an item, if it is still held back. An
// item that was asked about waits for the decision.
func (r *running) release(itemID string, decided bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.tr.open[itemID]; r.ended || o == nil || o.asked && !decided {
		return
	}
	for _, e := range r.tr.release(itemID) {
		r.host.Emit(e)
	}
}

// agentTurn notes a turn of a sub-agent, "" when it has ended.
func (r *running) agentTurn(threadID, turnID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.agents[threadID] = turnID
}

// await waits for the end of the turn that the call starts. It returns when
// the turn has ended, or soon after ctx has, with the last events.
func (r *running) await(ctx context.Context, start *jsonrpc.Call) ([]protocol.EventMsg, error) {
	gone := r.thread.child.gone
	select {
	case <-r.completed:
		if r.cutShort() {
			clearing, stop := context.WithTimeout(context.Background(), interruptGrace)
			defer stop()
			r.clear(clearing)
		}
		return r.outcome(nil)
	case <-gone:
		return r.outcome(nil)
	case <-ctx.Done():
	}
	r.interrupt(start)
	grace := time.NewTimer(interruptGrace)
	defer grace.Stop()
	select {
	case <-r.cleared:
	case <-gone:
	case <-grace.C:
	}
	return r.outcome(context.Cause(ctx))
}

func (r *running) cutShort() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result != nil && r.result.Status == "interrupted"
}

// clear ends the commands that an interrupted turn and its sub-agents leave
// running: Codex keeps them for a later turn. Versions that cannot be told so
// refuse.
func (r *running) clear(ctx context.Context) {
	for thread := range r.turns() {
		_ = r.thread.child.peer.Call(ctx, "thread/backgroundTerminals/clean", map[string]string{"threadId": thread}, nil)
	}
}

// outcome gives the last events of the turn and its error. interrupted is why
// the caller ended it, nil if it did not.
func (r *running) outcome(interrupted error) ([]protocol.EventMsg, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.result != nil && r.result.Status == "completed":
		return r.tr.end(r.result)
	case interrupted != nil:
		return r.tr.abort(interrupted)
	case r.aborted != nil:
		return r.tr.abort(r.aborted)
	case r.result != nil:
		return r.tr.end(r.result)
	}
	return r.tr.fail(r.thread.child.obituary().Error() + "; the conversation can go on in a new process")
}

// interrupt ends the turn and its sub-agents' over there, and what they run,
// without waiting.
func (r *running) interrupt(start *jsonrpc.Call) {
	c := r.thread.child
	c.run.Go(func() {
		defer close(r.cleared)
		ctx, stop := context.WithTimeout(context.Background(), interruptLimit)
		defer stop()
		select {
		case <-start.Done():
			var reply turnReply
			if start.Result(&reply) != nil {
				r.complete(nil) // it never began
				return
			}
			r.named(reply.Turn.ID)
		case <-r.known:
		case <-c.gone:
			return
		case <-ctx.Done():
			c.kill(&timeoutError{"turn/start", interruptLimit})
			return
		}
		r.cut(ctx)
		select {
		case <-r.completed:
			r.clear(ctx)
		case <-c.gone:
		case <-ctx.Done():
			c.kill(&timeoutError{"turn/interrupt", interruptLimit})
		}
	})
}

// cut interrupts the turn and its sub-agents' turns.
func (r *running) cut(ctx context.Context) {
	for thread, turn := range r.turns() {
		if turn != "" {
			// Refused if it has just ended by itself, which completed tells.
			_ = r.thread.child.peer.Call(ctx, "turn/interrupt", interruptParams{ThreadID: thread, TurnID: turn}, nil)
		}
	}
}

type interruptParams struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId"`
}

// turns are the ids of the turn and of its sub-agents' turns by thread.
func (r *running) turns() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := maps.Clone(r.agents)
	all[r.thread.id] = r.id
	return all
}
