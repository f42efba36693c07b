package approve

import (
	"cmp"
	"fmt"
	"log/slog"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
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
		l := record.Line{
			Event: record.Decided, Thread: r.Thread.ID, Turn: cmp.Or(r.TurnID, r.Turn), Call: r.Subject.Call(),
			Principal: r.Thread.Principal, Facts: r.Subject.Facts(true),
		}
		v.Decision, v.By, v.RuleWords = string(d.Decision), string(d.By), d.RuleWords
		v.Reason, v.Detail, v.Feedback = string(d.Reason), d.Detail, d.Feedback
		l.Reach, l.Verdict = r.Question.Reach, v
		switch overrules := r.Subject.Effect() == approval.Overrules; {
		case overrules && approves: // of nothing that runs
			l.Event, l.Decision = record.Overruled, ""
		case overrules && d.By == approval.ByNobody && v.Automatic == "": // nobody answered
			return nil
		case !approves:
			l.Bound()
		}
		var err error
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

// Note records the beginning or the end of a call, or a refusal, in a turn. It must be called before others receive the
// event: an engine that reports a beginning before the call runs then has it recorded before. It returns the id of a
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
