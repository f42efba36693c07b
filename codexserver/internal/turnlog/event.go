package turnlog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
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

// Add writes an event of the turn t, which has that id. Nil is for events of no turn that a caller
// waits for. Add returns the event with the ids of its thread and turn, if events of its type have
// them; an id that an engine has set stays. Add does not block.
func (l *Log) Add(t *Turn, id string, m protocol.EventMsg) (protocol.EventMsg, Step) {
	t = l.turn(t)
	if Changes(m) {
		t.tree.acting()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	named, doing := l.add(t, id, m)
	doing = elicit.OneLine(doing, maxDoing)
	t.now.do(doing)
	return named, Step{Doing: doing, Changes: Changes(m)}
}

// turn returns the turn t, or the log's own if t is nil.
func (l *Log) turn(t *Turn) *Turn {
	t = cmp.Or(t, &l.own)
	if l.last.Load() != t {
		l.last.Store(t)
	}
	return t
}

// Leave drops the turn of the last event, which has ended.
func (l *Log) Leave() { l.last.Store(nil) }

// add is Add under the turn's lock. It also returns what the turn does from then on, or "".
func (l *Log) add(t *Turn, id string, e protocol.EventMsg) (named protocol.EventMsg, doing string) {
	begun := !t.began.IsZero()
	named = e
	switch m := e.(type) {
	case protocol.SessionConfigured:
		m.ThreadID = m.SessionID
		named = m
		l.past(past(m.InitialMessages))
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
			l.concludes(*last)
		}
	case protocol.TurnAborted:
		m.TurnID = cmp.Or(m.TurnID, id)
		named = m
	case protocol.Error:
		l.note("error:", m.Message)
	case protocol.UserMessage:
		if m.Kind == "" || m.Kind == protocol.UserPlain {
			l.note("user:", m.Message)
		}
	case protocol.BackgroundEvent:
		doing = m.Message
		if m.Refused != nil {
			l.refused(m)
			if begun {
				t.refuse(t.refusal(m.Refused))
			}
		}
	case protocol.StreamError:
		doing = m.Message
		t.answer.coming.Reset() // it is written again
	case protocol.ModelReroute:
		doing = m.Words()
		t.answer.coming.Reset()
		l.note("model:", doing)
		if begun {
			t.reroute(m)
		}
	case protocol.TokenCount:
		if begun {
			t.tokens.count(m)
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
		l.says(m.Message)
	case protocol.AgentReasoning, protocol.AgentReasoningDelta:
		t.speaks(begun)
	case protocol.AgentReasoningRawContent, protocol.AgentReasoningRawContentDelta, protocol.ShutdownComplete:
	default:
		return l.addCall(t, id, e)
	}
	return named, doing
}

// addCall is add for commands, patches, tools, and what else comes from the model.
func (l *Log) addCall(t *Turn, id string, e protocol.EventMsg) (named protocol.EventMsg, doing string) {
	begun := !t.began.IsZero()
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
		named, doing = m, "running "+elicit.ShowCommand(first(m.Command))
		t.now.change()
		t.acts(begun)
		number := 0
		l.write(func() { number = l.beginCommand(m) })
		if begun {
			t.runs(m, number)
		}
	case protocol.ExecCommandOutputDelta: // it may run while the model works
		l.write(func() { l.print(m) })
	case protocol.ExecCommandEnd:
		m.TurnID = cmp.Or(m.TurnID, id)
		named, doing = m, thinking
		t.now.change()
		t.commands.ended(m)
		l.write(func() { l.endCommand(m) })
	case protocol.PatchApplyBegin:
		m.TurnID = cmp.Or(m.TurnID, id)
		named, doing = m, "changing files"
		t.acts(begun)
		if begun {
			t.patches.begin(m)
		}
		l.note("patch:", patchLines(m.Changes))
	case protocol.PatchApplyEnd:
		m.TurnID = cmp.Or(m.TurnID, id)
		named, doing = m, thinking
		t.now.change()
		if begun {
			t.patches.end(m)
			t.commands.ran = t.commands.ran || !m.Success
		}
		if m.Success {
			l.note("the patch was applied", "")
		} else {
			l.note("the patch was not applied:", m.Stderr)
		}
	case protocol.MCPToolCallBegin: // the transcript has no arguments, which may contain secrets
		doing = "calling " + m.Invocation.Server + "/" + m.Invocation.Tool
		t.acts(begun)
		t.commands.ran = t.commands.ran || begun
		l.note("tool "+showLine(m.Invocation.Tool)+" of the MCP server "+showLine(m.Invocation.Server), "")
	case protocol.MCPToolCallEnd:
		if m.Result.Err != nil {
			l.note("tool "+showLine(m.Invocation.Tool)+" failed", "")
		}
	case protocol.TurnDiff:
		if begun {
			t.diff = m.UnifiedDiff
		}
	case protocol.PlanUpdate:
		if begun {
			t.plan, t.tokens.answered = m.Plan, true
		}
		l.planned(m.Plan)
	case protocol.WebSearchBegin:
		t.tokens.answered = t.tokens.answered || begun
	case protocol.WebSearchEnd:
		l.note("web search:", m.Query)
	case protocol.ViewImageToolCall:
		t.tokens.answered = t.tokens.answered || begun
		l.note("image: "+showLine(m.Path), "")
	}
	return named, doing
}

// LineOf returns the line of the record for an event that reports the beginning or the end of a call, or a
// refusal. It is without thread and turn; its Event is "" for other events. Arguments and outputs, which may
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
				Verdict: record.Verdict{Decision: string(elicit.Denied), By: string(approval.ByEngine), Detail: r.Reason},
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
		Outcome: record.Outcome{Exit: &exit, Took: time.Duration(took).Milliseconds(), Words: elicit.OneLine(words, maxDoing)},
	}
}

// refusal describes what the engine refused by itself.
func (t *Turn) refusal(r *protocol.Refused) protocol.Refusal {
	out := protocol.Refusal{Kind: "other", Why: Show(r.Reason, MaxWords), By: string(approval.ByEngine), Reason: "policy"}
	switch {
	case len(r.Command) > 0:
		out.Kind, out.What, out.Cwd = "command", ShowCommand(r.Command), t.folder(r.Cwd)
	case len(r.Changes) > 0:
		out.Kind, out.What = "patch", ShowPaths(slices.Sorted(maps.Keys(r.Changes)))
	default:
		out.What = Show(r.Tool, MaxWords)
	}
	return out
}

// Asked writes a question. The transcript gets it with its decision, and also before it if a client
// may not show all of it.
func (l *Log) Asked(t *Turn, r *approval.Request) {
	l.turn(t).asked(r)
	if !r.Question.Cut() {
		return
	}
	whole := r.Question.Message
	if exec, ok := r.Event.(protocol.ExecApprovalRequest); ok {
		if command := elicit.ShowCommand(exec.Command); !strings.Contains(whole, command) {
			whole += "\n" + command
		}
	}
	l.note("open question:", whole)
}

func (t *Turn) asked(r *approval.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.questions, t.now.unseen = append(t.now.questions, r), true
	t.now.change()
}

// AnsweredAt records where the open questions of a turn can be answered.
func (l *Log) AnsweredAt(t *Turn, where string) {
	t = l.turn(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.now.questions) > 0 {
		t.now.where = where
		t.now.change()
	}
}

// Decided writes the decision about a question.
func (l *Log) Decided(t *Turn, r *approval.Request, d approval.Decision) {
	l.turn(t).decided(r, d)
	l.write(func() {
		l.entry("question:", r.Question.Message)
		heading := fmt.Sprintf("%s by %s", d.Decision, d.By)
		if d.Decision.Approves() {
			l.entry(heading, "")
			return
		}
		l.entry(heading+":", d.ForModel())
	})
}

func (t *Turn) decided(r *approval.Request, d approval.Decision) {
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
	if t.began.IsZero() {
		return
	}
	approved := d.Decision.Approves()
	refusal := protocol.Refusal{
		Kind: "other", Why: Show(d.ForModel(), MaxWords), By: Show(string(d.By), maxName), Reason: string(d.Reason),
	}
	switch m := r.Event.(type) {
	case protocol.ExecApprovalRequest:
		if approved {
			t.commands.approve(m.CallID, d.By)
		}
		refusal.Kind, refusal.What, refusal.Cwd = "command", ShowCommand(m.Command), t.folder(m.Cwd)
	case protocol.PatchApprovalRequest:
		refusal.Kind, refusal.What = "patch", ShowPaths(slices.Sorted(maps.Keys(m.Changes)))
	case protocol.AccessRequest:
		refusal.Kind, refusal.What = "access", Show(approval.AccessWords(m), MaxWords)
	default:
		refusal.What = Show(r.Question.Message, MaxWords)
	}
	if !approved {
		t.refuse(refusal)
	}
}
