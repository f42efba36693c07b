package workers

import (
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/telemetry"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/workerlink"
)

// replay passes what a worker observes to the telemetry of its user. It ignores what does
// not fit together, and bounds what it remembers: a worker that a command has taken over may
// report anything. Only one goroutine uses it.
type replay struct {
	user *telemetry.User // nil records nothing
	name string

	calls map[uint64]*telemetry.Call
	turns map[uint64]*telemetry.Turn
}

const (
	// maxReplayed limits the open calls and the running turns of a worker that are
	// recorded, each.
	maxReplayed = 4096
	// maxID limits the id of a thread or a command, in bytes.
	maxID = 128
)

// replay returns a replay for the worker of a user.
func (p *Pool) replay(name string) *replay {
	r := &replay{name: name, calls: map[uint64]*telemetry.Call{}, turns: map[uint64]*telemetry.Turn{}}
	if p.o.Telemetry != nil {
		r.user = p.o.Telemetry.User(name)
	}
	return r
}

// observe replays one observation.
func (r *replay) observe(o *workerlink.Observation) {
	if r.user == nil {
		return
	}
	switch o.Kind {
	case workerlink.KindBegin:
		r.begin(o)
	case workerlink.KindEnd:
		if c := r.calls[o.Call]; c != nil {
			delete(r.calls, o.Call)
			c.End(failure(o))
		}
	case workerlink.KindTurnBegin:
		c := r.calls[o.Call]
		if c != nil && r.turns[o.Turn] == nil && len(r.turns) < maxReplayed && len(o.Thread) <= maxID {
			r.turns[o.Turn] = c.Turn(o.Thread, o.Used)
		}
	default:
		if t := r.turns[o.Turn]; t != nil {
			r.observeTurn(t, o)
		}
	}
}

// observeTurn replays an observation of a turn.
func (r *replay) observeTurn(t *telemetry.Turn, o *workerlink.Observation) {
	switch o.Kind {
	case workerlink.KindStep:
		if len(o.Step.Call) <= maxID {
			t.Step(o.Step)
		}
	case workerlink.KindAsked:
		t.Asked(o.Question, o.Asks)
	case workerlink.KindDecided:
		t.Decided(o.Question, elicit.Decision(o.Decision), approval.Decider(o.By))
	case workerlink.KindTurnEnd:
		delete(r.turns, o.Turn)
		t.End(failure(o))
	}
}

func (r *replay) begin(o *workerlink.Observation) {
	if r.calls[o.Call] == nil && len(r.calls) < maxReplayed {
		r.calls[o.Call] = r.user.Begin(r.name, o.Tool, o.Traces)
	}
}

var (
	errFailed = errors.New("failed")
	errKilled = errors.New("the worker has ended")
)

// failure returns the error of an end.
func failure(o *workerlink.Observation) error {
	switch {
	case o.Aborted:
		return &engine.AbortError{Reason: protocol.AbortInterrupted}
	case o.Failed:
		return errFailed
	}
	return nil
}

// end ends what is open when the worker has ended.
func (r *replay) end() {
	for _, t := range r.turns {
		t.End(errKilled)
	}
	for _, c := range r.calls {
		c.End(errKilled)
	}
	clear(r.turns)
	clear(r.calls)
}
