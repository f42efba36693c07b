package workers

import (
	"context"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/internal/workerlink"
)

// Activity is what a worker does.
type Activity int

const (
	// Busy means that something runs that must not be interrupted, or that it is not known.
	Busy Activity = iota
	// Waiting means that each turn waits for an answer, and that the next worker asks again.
	Waiting
	// Connected means that nothing runs, and that clients have sessions or streams.
	Connected
	// Idle means that the worker may end.
	Idle
)

// Activity returns what the worker of a user does. A user without a worker is idle.
func (p *Pool) Activity(ctx context.Context, name string) Activity {
	p.mu.Lock()
	s := p.slots[name]
	var w *worker
	starts := false
	if s != nil {
		w, starts = s.worker, s.attempt != nil
	}
	p.mu.Unlock()
	if starts {
		return Busy
	}
	if w == nil || !w.alive() {
		return Idle
	}
	turns := w.work.turns.Load() // first: a turn that begins counts as busy before
	if w.work.busy.Load() > 0 {
		return Busy
	}
	switch load, ok := w.load(ctx); { // a request that comes meanwhile may still end while the user is given away
	case !ok || load.Parked: // no other worker could take the answer of a call that is parked
		return Busy
	case turns > 0:
		return Waiting
	case load.Busy:
		return Busy
	case load.Idle():
		return Idle
	}
	return Connected
}

// work are the turns of a worker, as it reports them. Only one goroutine writes it. What a worker that a
// command has taken over may report is bounded, and can make it only look busy or be moved.
type work struct {
	turns, busy atomic.Int64 // how many turns there are, and how many must not be interrupted
	calls       map[uint64]bool
	open        map[uint64]*openTurn
}

// openTurn is a turn that has not ended.
type openTurn struct {
	call      uint64
	questions map[uint64]bool // the open ones
	effects   map[string]bool // the commands, tools and patches that run
	busy      bool
}

// maxInTurn limits the open questions, and the effects, of a turn.
const maxInTurn = 256

func newWork() *work { return &work{calls: map[uint64]bool{}, open: map[uint64]*openTurn{}} }

// observe notes an observation. What is too much to remember counts as busy until the worker ends.
func (w *work) observe(o *workerlink.Observation) {
	t := w.open[o.Turn]
	switch o.Kind {
	case workerlink.KindBegin:
		if len(w.calls) == maxReplayed {
			w.busy.Add(1)
			return
		}
		w.calls[o.Call] = true
	case workerlink.KindEnd:
		delete(w.calls, o.Call)
		for _, t := range w.open {
			if t.call == o.Call {
				w.judge(t)
			}
		}
	case workerlink.KindTurnBegin:
		if t != nil || len(w.open) == maxReplayed {
			w.busy.Add(1)
			return
		}
		t = &openTurn{call: o.Call, questions: map[uint64]bool{}, effects: map[string]bool{}}
		w.open[o.Turn] = t
		w.judge(t) // before it counts, so that a turn that begins never looks as if it waited
		w.turns.Add(1)
	case workerlink.KindTurnEnd:
		if t == nil {
			return
		}
		delete(w.open, o.Turn)
		w.turns.Add(-1)
		if t.busy {
			w.busy.Add(-1)
		}
	default:
		if t != nil {
			w.inTurn(t, o)
			w.judge(t)
		}
	}
}

// inTurn notes an observation of a turn.
func (w *work) inTurn(t *openTurn, o *workerlink.Observation) {
	switch {
	case o.Kind == workerlink.KindDecided:
		delete(t.questions, o.Question)
	case o.Kind == workerlink.KindStep && (o.Step.What == workerlink.Ran || o.Step.What == workerlink.Called):
		delete(t.effects, o.Step.Call)
	case max(len(t.questions), len(t.effects)) == maxInTurn:
		w.busy.Add(1)
	case o.Kind == workerlink.KindAsked:
		t.questions[o.Question] = true
	case o.Kind == workerlink.KindStep && (o.Step.What == workerlink.Runs || o.Step.What == workerlink.Calls):
		t.effects[o.Step.Call] = true
	}
}

// judge says whether a turn must not be interrupted: it does not wait for an answer, something of it runs,
// or its call waits for it, which no other worker could answer.
func (w *work) judge(t *openTurn) {
	busy := len(t.questions) == 0 || len(t.effects) > 0 || w.calls[t.call]
	if busy == t.busy {
		return
	}
	t.busy = busy
	if busy {
		w.busy.Add(1)
	} else {
		w.busy.Add(-1)
	}
}
