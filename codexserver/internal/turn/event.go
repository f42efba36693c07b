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

// Changes reports whether an event begins something that may change files.
func Changes(m protocol.EventMsg) bool {
	switch m := m.(type) {
	case protocol.ExecCommandBegin:
		return !m.ReadOnly
	case protocol.PatchApplyBegin, protocol.MCPToolCallBegin:
		return true
	}
	return false
}

const thinking = "thinking"

// Add reads an event of the turn, which has that id. Command is the number in its thread of the command that the event
// begins. Add returns the event with the ids of its thread and turn, if events of its type have them; an id that an engine
// has set stays. It also returns what the turn does from then on, as a line for a person, or "". Add does not block.
func (t *Turn) Add(id string, command int, m protocol.EventMsg) (named protocol.EventMsg, doing string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	named, doing = t.add(id, command, m)
	doing = show.Status(doing)
	t.now.do(doing)
	return named, doing
}

// add is Add under the turn's lock, with all words of what the turn does.
func (t *Turn) add(id string, command int, e protocol.EventMsg) (named protocol.EventMsg, doing string) {
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
		t.answer.Lacks = m.Incomplete
		if last := m.LastAgentMessage; last != nil {
			t.answer.Text = *last
		}
	case protocol.TurnAborted:
		m.TurnID = cmp.Or(m.TurnID, id)
		named = m
	case protocol.BackgroundEvent:
		doing = m.Message
		if r := m.Refused; r != nil {
			t.refuse("other", r, approval.ByPolicy, "policy")
		}
	case protocol.StreamError:
		doing = m.Message
		t.answer.coming.Reset() // it is written again
	case protocol.ModelReroute:
		doing = m.Words()
		t.answer.coming.Reset()
		t.reroute(m)
	case protocol.TokenCount:
		t.tokens.count(m)
		t.budget.counts(t.tokens.used())
	case protocol.AgentMessageDelta:
		t.tokens.answered = true
		if t.answer.coming.Len() < maxComing {
			t.answer.coming.WriteString(m.Delta)
		}
	case protocol.AgentMessage:
		t.tokens.answered = true
		doing, t.answer.Last = m.Message, m.Message
		t.answer.coming.Reset()
	case protocol.AgentReasoning, protocol.AgentReasoningDelta:
		t.tokens.answered = true
	default:
		return t.addCall(id, command, e)
	}
	return named, doing
}

// addCall is add for commands, patches, tools, and what else comes from the model.
func (t *Turn) addCall(id string, command int, e protocol.EventMsg) (named protocol.EventMsg, doing string) {
	named = e
	switch m := e.(type) {
	case protocol.ExecApprovalRequest:
		m.TurnID = cmp.Or(m.TurnID, id)
		named = m
		t.tokens.answered = true
	case protocol.PatchApprovalRequest:
		m.TurnID = cmp.Or(m.TurnID, id)
		named = m
		t.tokens.answered = true
	case protocol.ExecCommandBegin:
		m.TurnID = cmp.Or(m.TurnID, id)
		named, doing = m, "running "+elicit.ShowCommand(show.Begins(m.Command))
		t.now.change()
		t.acts(m)
		t.runs(m, command)
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
		t.acts(m)
		if !t.folder.ends {
			t.folder.patches.Begin(m)
		}
	case protocol.PatchApplyEnd:
		m.TurnID = cmp.Or(m.TurnID, id)
		named, doing = m, thinking
		t.now.change()
		t.commands.ended(m.CallID)
		t.commands.ran = t.commands.ran || !m.Success
		if !t.folder.ends {
			t.folder.patches.End(m)
		}
	case protocol.MCPToolCallBegin:
		doing = "calling " + m.Invocation.Server + "/" + m.Invocation.Tool
		t.acts(m)
		t.commands.ran = true
	case protocol.MCPToolCallEnd:
		t.commands.ended(m.CallID)
	case protocol.TurnDiff:
		t.folder.diff = m.UnifiedDiff
	case protocol.PlanUpdate:
		t.plan, t.tokens.answered = m.Plan, true
	case protocol.WebSearchBegin, protocol.ViewImageToolCall:
		t.tokens.answered = true
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

// refuse records what was not approved, by whom and for which reason. Kind is that of neither a command nor a patch.
func (t *Turn) refuse(kind string, r *protocol.Refused, by approval.Decider, reason string) {
	out := protocol.Refusal{
		Kind: kind, What: show.Text(r.Tool, show.MaxWords), Why: show.Text(r.Reason, show.MaxWords), By: show.Text(string(by), show.MaxName), Reason: reason,
	}
	switch {
	case len(r.Command) > 0:
		out.Kind, out.What, out.Cwd = "command", show.Command(r.Command), t.cwd(r.Cwd)
	case len(r.Changes) > 0:
		out.Kind, out.What = "patch", show.Paths(slices.Sorted(maps.Keys(r.Changes)))
	}
	t.refused = keep(append(t.refused, out), &t.dropped.Refused)
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
	if d.Decision.Approves() {
		return
	}
	kind, refused := "other", protocol.Refused{Reason: d.ForModel()}
	switch m := r.Event.(type) {
	case protocol.ExecApprovalRequest:
		refused.Command, refused.Cwd = m.Command, m.Cwd
	case protocol.PatchApprovalRequest:
		refused.Changes = m.Changes
	case protocol.AccessRequest:
		kind, refused.Tool = "access", approval.AccessWords(m)
	default:
		refused.Tool = r.Question.Message
	}
	t.refuse(kind, &refused, d.By, string(d.Reason))
}
