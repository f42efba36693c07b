package approve

import (
	"cmp"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// evidence is what is known of how a decision was made.
type evidence struct {
	automatic string // what clients answered by themselves
	rule      int    // the number of the rule that was kept, or 0
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
			Decision: string(d.Decision), By: string(d.By), Rule: e.rule, RuleWords: d.RuleWords,
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

// Note records the beginning or the end of a call, or a refusal, in a turn. It must be called before others receive
// the event: an engine that reports a beginning before the call runs then has it recorded before.
func (b *Board) Note(thread approval.Thread, turn string, line record.Line) {
	if b.options.Record == nil {
		return
	}
	line.Thread, line.Principal, line.Turn = thread.ID, thread.Principal, turn
	line.Bound()
	err := guard(b.log, "Record", func() error {
		_, err := b.options.Record.Add(line, false)
		return err
	})
	if err != nil {
		b.log.Warn("not recorded", "event", string(line.Event), "thread", line.Thread, "call", line.Call, "error", err)
	}
}
