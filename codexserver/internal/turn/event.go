package turn

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/internal/show"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Step is what an event means for its turn.
type Step struct {
	// Doing is what the turn does from then on, as a line for a person; "" is what it did.
	Doing string
	// Changes is true if something begins that may change files.
	Changes bool
}

// Changes reports whether an event begins something that may change files.
func Changes(m protocol.EventMsg) bool {
	switch m.(type) {
	case protocol.ExecCommandBegin, protocol.PatchApplyBegin, protocol.MCPToolCallBegin:
		return true
	}
	return false
}

const thinking = "thinking"

// Add reads an event of the turn, which has that id. Command is the number in its thread of the command that the event
// begins. Add returns the event with the ids of its thread and turn, if events of its type have them; an id that an engine
// has set stays. Add does not block.
func (t *Turn) Add(id string, command int, m protocol.EventMsg) (protocol.EventMsg, Step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	named, doing := t.add(id, command, m)
	doing = show.Status(doing)
	t.now.do(doing)
	return named, Step{Doing: doing, Changes: Changes(m)}
}

// add is Add under the turn's lock. It also returns what the turn does from then on, or "".
func (t *Turn) add(id string, command int, e protocol.EventMsg) (named protocol.EventMsg, doing string) {
	begun := !t.time.began.IsZero()
	named = e
	switch m := e.(type) {
	case protocol.SessionConfigured:
		m.ThreadID = m.SessionID
		named = m
	case protocol.TaskStarted:
		m.TurnID = cmp.Or(m.TurnID, id)
		named, doing = m, thinking
		t.now.change()
	case protocol.TaskComplete:
		m.TurnID = cmp.Or(m.TurnID, id)
		named = m
		t.answer.lacks = m.Incomplete
		if last := m.LastAgentMessage; last != nil {
			t.answer.text = *last
		}
	case protocol.TurnAborted:
		m.TurnID = cmp.Or(m.TurnID, id)
		named = m
	case protocol.BackgroundEvent:
		doing = m.Message
		if m.Refused != nil && begun {
			t.refuse(t.refusal(m.Refused))
		}
	case protocol.StreamError:
		doing = m.Message
		t.answer.coming.Reset() // it is written again
	case protocol.ModelReroute:
		doing = m.Words()
		t.answer.coming.Reset()
		if begun {
			t.reroute(m)
		}
	case protocol.TokenCount:
		if begun {
			t.tokens.count(m)
			t.spending.counts(t.tokens.used())
		}
	case protocol.AgentMessageDelta:
		t.speaks(begun)
		if t.answer.coming.Len() < maxComing {
			t.answer.coming.WriteString(m.Delta)
		}
	case protocol.AgentMessage:
		t.speaks(begun)
		doing, t.answer.last = m.Message, m.Message
		t.answer.coming.Reset()
	case protocol.AgentReasoning, protocol.AgentReasoningDelta:
		t.speaks(begun)
	default:
		return t.addCall(id, command, e)
	}
	return named, doing
}

// addCall is add for commands, patches, tools, and what else comes from the model.
func (t *Turn) addCall(id string, command int, e protocol.EventMsg) (named protocol.EventMsg, doing string) {
	begun := !t.time.began.IsZero()
	named = e
	switch m := e.(type) {
	case protocol.ExecApprovalRequest:
		m.TurnID = cmp.Or(m.TurnID, id)
		named = m
		t.speaks(begun)
	case protocol.PatchApprovalRequest:
		m.TurnID = cmp.Or(m.TurnID, id)
		named = m
		t.speaks(begun)
	case protocol.ExecCommandBegin:
		m.TurnID = cmp.Or(m.TurnID, id)
		named, doing = m, "running "+elicit.ShowCommand(show.Begins(m.Command))
		t.now.change()
		t.acts(begun)
		if begun {
			t.runs(m, command)
		}
	case protocol.ExecCommandEnd:
		m.TurnID = cmp.Or(m.TurnID, id)
		named, doing = m, thinking
		t.now.change()
		if command := t.commands.ended(m.CallID); command != nil {
			command.ExitCode, command.DurationMS = new(m.ExitCode), new(time.Duration(m.Duration).Milliseconds())
		}
	case protocol.PatchApplyBegin:
		m.TurnID = cmp.Or(m.TurnID, id)
		named, doing = m, "changing files"
		t.acts(begun)
		if begun {
			t.folder.patches.Begin(m)
		}
	case protocol.PatchApplyEnd:
		m.TurnID = cmp.Or(m.TurnID, id)
		named, doing = m, thinking
		t.now.change()
		t.commands.ended(m.CallID)
		if begun {
			t.folder.patches.End(m)
			t.commands.ran = t.commands.ran || !m.Success
		}
	case protocol.MCPToolCallBegin:
		doing = "calling " + m.Invocation.Server + "/" + m.Invocation.Tool
		t.acts(begun)
		t.commands.ran = t.commands.ran || begun
	case protocol.MCPToolCallEnd:
		t.commands.ended(m.CallID)
	case protocol.TurnDiff:
		if begun {
			t.folder.diff = m.UnifiedDiff
		}
	case protocol.PlanUpdate:
		if begun {
			t.plan, t.tokens.answered = m.Plan, true
		}
	case protocol.WebSearchBegin, protocol.ViewImageToolCall:
		t.speaks(begun)
	}
	return named, doing
}

// LineOf returns the line of the record for an event that reports the beginning or the end of a call, or a
// refusal. It is without thread, turn and decision; its Event is "" for other events. Arguments and outputs, which may
// contain secrets, are not in it.
func LineOf(e protocol.EventMsg) (line record.Line) {
	switch m := e.(type) {
	case protocol.ExecCommandBegin:
		line = record.Line{Event: record.Begins, Call: m.CallID, Subject: record.Subject{Kind: record.KindCommand, Command: m.Command, Cwd: m.Cwd}}
	case protocol.PatchApplyBegin:
		line = record.Line{Event: record.Begins, Call: m.CallID, Subject: record.Subject{Kind: record.KindPatch, Changes: record.ChangesOf(m.Changes, false)}}
	case protocol.MCPToolCallBegin:
		line = record.Line{Event: record.Begins, Call: m.CallID, Subject: record.Subject{Kind: record.KindTool, Tool: m.Invocation.Server + "/" + m.Invocation.Tool}}
	case protocol.ExecCommandEnd:
		line = ended(m.CallID, m.ExitCode, m.Duration, "")
	case protocol.PatchApplyEnd:
		if m.Success {
			return ended(m.CallID, 0, 0, "")
		}
		line = ended(m.CallID, 1, 0, m.Stderr)
	case protocol.MCPToolCallEnd:
		if m.Result.Err == nil {
			return ended(m.CallID, 0, m.Duration, "")
		}
		line = ended(m.CallID, 1, m.Duration, *m.Result.Err)
	case protocol.BackgroundEvent:
		if r := m.Refused; r != nil {
			line = record.Line{
				Event: record.Decided, Call: r.CallID, Subject: record.Subject{Kind: record.KindTool, Tool: r.Tool, Cwd: r.Cwd},
				Verdict: record.Verdict{Decision: string(elicit.Denied), By: string(approval.ByPolicy), Detail: r.Reason},
			}
			switch {
			case len(r.Command) > 0:
				line.Kind, line.Command = record.KindCommand, r.Command
			case len(r.Changes) > 0:
				line.Kind, line.Changes = record.KindPatch, record.ChangesOf(r.Changes, false)
			}
		}
	}
	return line
}

func ended(call string, exit int, took protocol.Duration, words string) record.Line {
	return record.Line{
		Event: record.Ends, Call: call,
		Outcome: record.Outcome{Exit: &exit, Took: time.Duration(took).Milliseconds(), Words: show.Status(words)},
	}
}

// refusal describes what the engine refused by itself.
func (t *Turn) refusal(r *protocol.Refused) protocol.Refusal {
	out := protocol.Refusal{Kind: "other", Why: show.Text(r.Reason, show.MaxWords), By: string(approval.ByPolicy), Reason: "policy"}
	switch {
	case len(r.Command) > 0:
		out.Kind, out.What, out.Cwd = "command", show.Command(r.Command), t.cwd(r.Cwd)
	case len(r.Changes) > 0:
		out.Kind, out.What = "patch", show.Paths(slices.Sorted(maps.Keys(r.Changes)))
	default:
		out.What = show.Text(r.Tool, show.MaxWords)
	}
	return out
}

// Asked records a question.
func (t *Turn) Asked(r *approval.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.questions, t.now.unseen = append(t.now.questions, r), true
	t.now.change()
}

// AnsweredAt records where the open questions of the turn can be answered.
func (t *Turn) AnsweredAt(where string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.now.questions) > 0 {
		t.now.where = where
		t.now.change()
	}
}

// Decided records the decision about a question.
func (t *Turn) Decided(r *approval.Request, d approval.Decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.questions = slices.DeleteFunc(t.now.questions, func(q *approval.Request) bool { return q == r })
	if len(t.now.questions) == 0 {
		t.now.where = ""
	}
	t.now.do(thinking)
	t.now.change()
	t.answer.stopped = t.answer.stopped || d.Decision == elicit.Abort
	t.remark(d.Remarks)
	if call := r.Call(); call != "" {
		t.commands.decided(call, d)
	}
	if t.time.began.IsZero() || d.Decision.Approves() {
		return
	}
	refusal := protocol.Refusal{
		Kind: "other", Why: show.Text(d.ForModel(), show.MaxWords), By: show.Text(string(d.By), show.MaxName), Reason: string(d.Reason),
	}
	switch m := r.Event.(type) {
	case protocol.ExecApprovalRequest:
		refusal.Kind, refusal.What, refusal.Cwd = "command", show.Command(m.Command), t.cwd(m.Cwd)
	case protocol.PatchApprovalRequest:
		refusal.Kind, refusal.What = "patch", show.Paths(slices.Sorted(maps.Keys(m.Changes)))
	case protocol.AccessRequest:
		refusal.Kind, refusal.What = "access", show.Text(approval.AccessWords(m), show.MaxWords)
	default:
		refusal.What = show.Text(r.Question.Message, show.MaxWords)
	}
	t.refuse(refusal)
}
