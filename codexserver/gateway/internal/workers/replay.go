package workers

import (
	"errors"

	"github.com/codexmcp/codexmcp/codexserver"
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
	user     *telemetry.User // nil records nothing
	name     string
	approver string

	calls map[uint64]codexserver.CallObserver
	turns map[uint64]*replayedTurn
}

// replayedTurn is a turn that runs.
type replayedTurn struct {
	codexserver.TurnObserver
	commands  map[string]bool // the ids of open commands, tools and patches
	questions map[uint64]*approval.Request
}

const (
	// maxReplayed limits the open calls and the running turns of a worker that are
	// recorded, each.
	maxReplayed = 4096
	// maxInTurn limits the open commands and the open questions of a turn that are
	// recorded, each.
	maxInTurn = 256
	// maxID limits the id of a thread or a command, in bytes.
	maxID = 128
)

// replay returns a replay for the worker of a user.
func (p *Pool) replay(name string) *replay {
	r := &replay{name: name, approver: p.o.HTTP.Principals[name].Approver, calls: map[uint64]codexserver.CallObserver{}, turns: map[uint64]*replayedTurn{}}
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
	case workerlink.KindReport:
		r.user.Report(o.Method, o.Status)
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
			r.turns[o.Turn] = &replayedTurn{c.Turn(o.Thread, o.Used), map[string]bool{}, map[uint64]*approval.Request{}}
		}
	default:
		if t := r.turns[o.Turn]; t != nil {
			if o.Kind == workerlink.KindTurnEnd {
				delete(r.turns, o.Turn)
			}
			t.observe(o)
		}
	}
}

func (r *replay) begin(o *workerlink.Observation) {
	principal := o.Principal
	if principal != r.approver {
		principal = r.name
	}
	if r.calls[o.Call] == nil && len(r.calls) < maxReplayed {
		r.calls[o.Call] = r.user.Begin(principal, o.Tool, o.Traces)
	}
}

// observe replays an observation of the turn.
func (t *replayedTurn) observe(o *workerlink.Observation) {
	switch o.Kind {
	case workerlink.KindEvent:
		if m, err := protocol.ParseEvent(o.Event); err == nil && t.expects(m) {
			t.Event(m)
		}
	case workerlink.KindAsked:
		m, err := protocol.ParseEvent(o.Event)
		if err == nil && t.questions[o.Question] == nil && len(t.questions) < maxInTurn {
			q := &approval.Request{Event: question(m)}
			t.questions[o.Question] = q
			t.Asked(q)
		}
	case workerlink.KindDecided:
		if q := t.questions[o.Question]; q != nil {
			delete(t.questions, o.Question)
			t.Decided(q, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Decision(o.Decision)}, By: approval.Decider(o.By)})
		}
	case workerlink.KindTurnEnd:
		t.End(failure(o))
	}
}

// expects reports whether an event fits to the ones before it.
func (t *replayedTurn) expects(m protocol.EventMsg) bool {
	id, begins := "", false
	switch m := m.(type) {
	case protocol.ExecCommandBegin:
		id, begins = m.CallID, true
	case protocol.MCPToolCallBegin:
		id, begins = m.CallID, true
	case protocol.PatchApplyBegin:
		id, begins = m.CallID, true
	case protocol.ExecCommandEnd:
		id = m.CallID
	case protocol.MCPToolCallEnd:
		id = m.CallID
	case protocol.PatchApplyEnd:
		id = m.CallID
	default:
		return true
	}
	if !begins {
		delete(t.commands, id)
		return true
	}
	if len(id) > maxID || len(t.commands) >= maxInTurn {
		return false
	}
	t.commands[id] = true
	return true
}

// question returns the event of a question without its members.
func question(m protocol.EventMsg) protocol.EventMsg {
	switch m.(type) {
	case protocol.ExecApprovalRequest:
		return protocol.ExecApprovalRequest{}
	case protocol.PatchApprovalRequest:
		return protocol.PatchApprovalRequest{}
	}
	return nil
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
