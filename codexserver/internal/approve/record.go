package approve

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// evidence is what is known of how a decision was made.
type evidence struct {
	automatic string // what clients answered by themselves
	waited    time.Duration
}

// add records a question with its decision, and returns its id.
func (b *Board) add(a *approval.Request, d approval.Decision, e evidence) (id string, err error) {
	if b.options.Record == nil {
		return "", nil
	}
	subject, err := subjectOf(a)
	if err != nil {
		return "", err
	}
	l := record.Line{
		Event: record.Decided, Thread: a.Thread.ID, Turn: turnOf(a), Call: a.Call(), Principal: a.Thread.Principal, Subject: subject,
		Verdict: record.Verdict{
			Decision: string(d.Decision), By: string(d.By), Rule: d.Rule, RuleWords: d.RuleWords,
			Reason: string(d.Reason), Detail: d.Detail, Feedback: d.Feedback, Automatic: e.automatic, Waited: e.waited.Milliseconds(),
		},
	}
	approves := d.Decision.Approves()
	if !approves {
		l.Bound()
	}
	return b.options.Record.Add(l, approves)
}

// turnOf returns the id of the turn that asks.
func turnOf(a *approval.Request) string {
	turn := ""
	switch m := a.Event.(type) {
	case protocol.ExecApprovalRequest:
		turn = m.TurnID
	case protocol.PatchApprovalRequest:
		turn = m.TurnID
	}
	return cmp.Or(turn, a.Turn)
}

// subjectOf returns what a question is about. The error says that JSON cannot have it.
func subjectOf(a *approval.Request) (s record.Subject, err error) {
	s = record.Subject{Reach: a.Question.Reach}
	switch m := a.Event.(type) {
	case protocol.ExecApprovalRequest:
		s.Kind, s.Command, s.Cwd = record.KindCommand, m.Command, m.Cwd
	case protocol.PatchApprovalRequest:
		s.Kind, s.Cwd, s.Changes = record.KindPatch, m.Cwd, record.ChangesOf(m.Changes, true)
	case protocol.AccessRequest:
		s.Kind, s.Access, s.Client = record.KindAccess, &m.Access, m.Client
	default:
		s.Kind = record.KindOther
		s.Question, err = protocol.AppendEvent(nil, m)
	}
	return s, err
}

// calls are the calls of one thread that were approved or run. The mutex of the board guards them.
type calls struct {
	approved map[string]string // the ids of decisions that no call has used, by call
	running  map[string]string // the ids of the decisions of running calls, "" if nobody was asked
}

// keep keeps the decision about a call until the call begins.
func (b *Board) keep(r *approval.Request, d *approval.Decision, id string) {
	call := r.Call()
	if call == "" || id == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !d.Decision.Approves() {
		delete(b.calls.approved, call)
		return
	}
	if b.calls.approved == nil {
		b.calls.approved = map[string]string{}
	}
	b.calls.approved[call] = id
}

// Note records the beginning or the end of a call, or a refusal: the line that [turn.LineOf] returns for
// an event of a turn. It must be called before others receive the event: an engine that reports a beginning
// before the call runs then has it recorded before.
func (b *Board) Note(thread approval.Thread, turn string, line record.Line) {
	if b.options.Record == nil || line.Event == "" {
		return
	}
	line.Thread, line.Principal, line.Turn = thread.ID, thread.Principal, turn
	b.mu.Lock()
	switch line.Event {
	case record.Begins:
		line.DecisionID = b.calls.approved[line.Call]
		delete(b.calls.approved, line.Call)
		if b.calls.running == nil {
			b.calls.running = map[string]string{}
		}
		b.calls.running[line.Call] = line.DecisionID
	case record.Ends:
		line.DecisionID = b.calls.running[line.Call]
		delete(b.calls.running, line.Call)
	}
	b.mu.Unlock()
	b.write(line)
}

// EndTurn forgets the approvals that no call of the turn has used, and records the calls whose ends were not
// reported.
func (b *Board) EndTurn(thread approval.Thread, turn string) {
	b.mu.Lock()
	left := b.calls.running
	b.calls = calls{}
	b.mu.Unlock()
	for _, call := range slices.Sorted(maps.Keys(left)) {
		b.write(record.Line{
			Event: record.Ends, DecisionID: left[call], Thread: thread.ID, Principal: thread.Principal, Turn: turn, Call: call,
			Outcome: record.Outcome{Words: "the turn ended before the end was reported"},
		})
	}
}

// write records a line that is not a question's.
func (b *Board) write(line record.Line) {
	line.Bound()
	err := guard(b.log, "Record", func() error {
		_, err := b.options.Record.Add(line, false)
		return err
	})
	if err != nil {
		b.log.Warn("not recorded", "event", string(line.Event), "thread", line.Thread, "call", line.Call, "error", err)
	}
}
