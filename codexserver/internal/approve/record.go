package approve

import (
	"cmp"
	"fmt"
	"log/slog"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/stack"
)

// record records a question with its decision, and sets the decision's id. V is what is known of how the
// decision was made. An approval that cannot be recorded does not count: nothing runs that the record lacks.
func (b *Board) record(r *approval.Request, d *approval.Decision, v record.Verdict) {
	approves := d.Decision.Approves()
	err := stack.Guard(b.log, "Record", func() error {
		if b.options.Record == nil {
			return nil
		}
		l, err := lineOf(r)
		if err != nil {
			return err
		}
		v.Decision, v.By, v.RuleWords = string(d.Decision), string(d.By), d.RuleWords
		v.Reason, v.Detail, v.Feedback = string(d.Reason), d.Detail, d.Feedback
		l.Verdict = v
		switch _, overrules := r.Event.(protocol.OverruleRequest); {
		case overrules && approves: // of nothing that runs
			l.Event, l.Decision = record.Overruled, ""
		case overrules && d.By == approval.ByNobody && v.Automatic == "": // nobody answered
			return nil
		case !approves:
			l.Bound()
		}
		d.ID, err = b.options.Record.Add(l, approves)
		return err
	})
	if err == nil {
		return
	}
	b.log.Warn("approval not recorded", "error", err)
	if !approves {
		return
	}
	words := fmt.Sprintf("the approval could not be recorded, so it does not count: %v", err)
	d.Outcome = denied(words, words, slog.LevelWarn)
	d.Remarks = append(d.Remarks, "Nothing was run: "+words+".")
}

// lineOf returns the line about a question, without its decision. The error says that JSON cannot have it.
func lineOf(r *approval.Request) (l record.Line, err error) {
	l = record.Line{Event: record.Decided, Thread: r.Thread.ID, Turn: r.Turn, Call: r.Call(), Principal: r.Thread.Principal}
	l.Reach = r.Question.Reach
	switch m := r.Event.(type) {
	case protocol.ExecApprovalRequest:
		l.Turn, l.Kind, l.Command, l.Cwd = cmp.Or(m.TurnID, r.Turn), record.KindCommand, m.Command, m.Cwd
	case protocol.HostRequest:
		l.Call, l.Kind, l.Host, l.Command, l.Cwd = m.CallID, record.KindHost, m.Host, m.Command, m.Cwd
	case protocol.PatchApprovalRequest:
		l.Turn, l.Kind, l.Cwd, l.Changes = cmp.Or(m.TurnID, r.Turn), record.KindPatch, m.Cwd, record.ChangesOf(m.Changes, true)
	case protocol.AccessRequest:
		l.Kind, l.Access, l.Client = record.KindAccess, &m.Access, m.Client
	case protocol.OverruleRequest:
		l.Call, l.Subject = m.CallID, record.SubjectOf(&m.Refused, false)
	default:
		l.Kind = record.KindOther
		l.Question, err = protocol.AppendEvent(nil, m)
	}
	return l, err
}

// Note records the beginning or the end of a call, or a refusal, in a turn. It must be called before others receive
// the event: an engine that reports a beginning before the call runs then has it recorded before. It returns the id of a
// decision, "" if it is not recorded.
func (b *Board) Note(thread approval.Thread, turn string, line record.Line) (decision string) {
	line.Thread, line.Principal, line.Turn = thread.ID, thread.Principal, turn
	if line.Decision != string(elicit.Approved) {
		line.Bound()
	}
	err := stack.Guard(b.log, "Record", func() (err error) {
		decision, err = b.options.Record.Add(line, false)
		return err
	})
	if err != nil {
		b.log.Warn("not recorded", "event", string(line.Event), "thread", line.Thread, "call", line.Call, "error", err)
	}
	return decision
}
