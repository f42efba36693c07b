package turn

import (
	"cmp"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/internal/transcript"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
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

// Step is what others need of an event.
type Step struct {
	// Event is the event with the ids of its thread and turn, if events of its type have them; an id that an engine has
	// set stays.
	Event protocol.EventMsg
	// Doing is what the turn does from then on, as words for a person, or "".
	Doing string
	// Line is the line of the record for the beginning or the end of a call, with the decision that allowed it, and for
	// what was refused or allowed without a question. It is without thread and turn, and nil for other events.
	// Arguments and outputs, which may contain secrets, are not in it.
	Line *record.Line
}

// Add reads an event of the turn, which has that id, and writes what a reader should know of it into the log of the
// thread. It waits for nobody.
func (t *Turn) Add(id string, log *transcript.Log, m protocol.EventMsg) Step {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Step{Event: m}
	t.add(id, log, &s)
	if s.Doing = plain.Status(s.Doing); s.Doing != "" {
		run, _ := m.(protocol.ExecCommandBegin)
		t.now.do(s.Doing, run.CallID)
	}
	return s
}

// add is Add under the turn's lock, with all words of what the turn does.
func (t *Turn) add(id string, log *transcript.Log, s *Step) {
	switch m := s.Event.(type) {
	case protocol.SessionConfigured:
		m.ThreadID = m.SessionID
		s.Event = m
		log.Past(m.InitialMessages)
	case protocol.UserMessage, protocol.Error:
		log.Said(m)
	case protocol.TaskStarted:
		m.TurnID = cmp.Or(m.TurnID, id)
		s.Event, s.Doing = m, thinking
		t.now.change()
		t.starts()
	case protocol.TaskComplete:
		m.TurnID = cmp.Or(m.TurnID, id)
		s.Event = m
		t.answer.Lacks = m.Incomplete
		if last := m.LastAgentMessage; last != nil {
			if t.answer.Text = *last; *last != t.answer.Last {
				log.Entry("codex:", *last)
			}
		}
	case protocol.TurnAborted:
		m.TurnID = cmp.Or(m.TurnID, id)
		s.Event = m
	case protocol.BackgroundEvent:
		s.Doing = m.Message
		if m.Remark {
			t.remark(plain.Short(m.Message, plain.MaxWords) + ".")
		}
		if m.Missing != nil {
			t.misses(*m.Missing)
		}
		if m.Made != "" && t.status != ending && !t.over() {
			t.folder.patches.Made(m.Made)
		}
		switch {
		case m.Refused != nil:
			s.Line = t.ruled(m)
			log.Refused(m.Refused, m.Message)
		case m.Allowed != nil:
			s.Line = t.ruled(m)
			log.Entry("allowed by the "+m.Allowed.By+":", m.Message)
		}
	case protocol.StreamError:
		s.Doing = m.Message
		t.answer.coming.Reset() // it is written again
	case protocol.ModelReroute:
		s.Doing = m.Words()
		log.Said(m)
		t.answer.coming.Reset()
		t.reroute(m)
	case protocol.TokenCount:
		t.tokens.count(m)
		if b := t.Order.Budget; b.bounds() && t.stop != nil && t.tokens.used() >= *b.Tokens {
			t.stop(&SpentError{float64(*b.Tokens), "token"})
		}
	case protocol.AgentMessageDelta:
		t.tokens.answered = true
		if t.answer.coming.Len() < maxComing {
			t.answer.coming.WriteString(m.Delta)
		}
	case protocol.AgentMessage:
		t.tokens.answered = true
		log.Said(m)
		s.Doing, t.answer.Last = m.Message, m.Message
		t.answer.coming.Reset()
	case protocol.AgentReasoning, protocol.AgentReasoningDelta, protocol.WebSearchBegin:
		t.tokens.answered = true
	default:
		t.addCall(id, log, s)
	}
}

// addCall is add for commands, patches, tools, and what else comes from the model.
func (t *Turn) addCall(id string, log *transcript.Log, s *Step) {
	switch m := s.Event.(type) {
	case protocol.ExecApprovalRequest:
		m.TurnID = cmp.Or(m.TurnID, id)
		s.Event = m
		t.tokens.answered = true
	case protocol.PatchApprovalRequest:
		m.TurnID = cmp.Or(m.TurnID, id)
		s.Event = m
		t.tokens.answered = true
	case protocol.ExecCommandBegin:
		m.TurnID = cmp.Or(m.TurnID, id)
		s.Event, s.Doing = m, "running "+plain.ShortCommand(decide.Written(m.Command), 3*plain.MaxWords)
		switch {
		case t.check.is(m.CallID):
			s.Doing = "checking: " + t.check.Command
		case t.setup.is(m.CallID):
			s.Doing = "setting up: " + t.setup.Command
		}
		t.now.change()
		s.Line = t.begins(m, m.CallID, approval.Command{Command: m.Command, Cwd: m.Cwd})
		t.runs(m, log.Begins(m))
	case protocol.ExecCommandOutputDelta:
		log.Prints(m)
		if m.CallID == t.now.call && t.now.Output != nil {
			t.now.Output.Write(m.Chunk)
		}
	case protocol.ExecCommandEnd:
		m.TurnID = cmp.Or(m.TurnID, id)
		s.Event, s.Doing = m, thinking
		log.Ends(m)
		t.now.change()
		command, line := t.ended(m.CallID, m.ExitCode, m.Duration, m.Status)
		line.Hosts = m.Hosts
		if m.Status == protocol.ExecDeclined {
			line.Exit = nil
		}
		if s.Line = line; command != nil {
			command.ExitCode, command.DurationMS = line.Exit, new(line.Took)
		}
		for _, c := range []*check{&t.check, &t.setup} {
			if c.is(m.CallID) {
				c.ExitCode, c.Output = line.Exit, elicit.ShowText(m.FormattedOutput)
			}
		}
	case protocol.PatchApplyBegin:
		m.TurnID = cmp.Or(m.TurnID, id)
		s.Event, s.Doing = m, "changing files"
		log.Patch(m.Changes)
		s.Line = t.begins(m, m.CallID, approval.Patch{Changes: m.Changes})
		if t.status != ending && !t.over() {
			t.folder.patches.Begin(m)
			t.failed.begin(m)
		}
	case protocol.PatchApplyEnd:
		m.TurnID = cmp.Or(m.TurnID, id)
		s.Event, s.Doing = m, thinking
		t.now.change()
		if m.Success {
			log.Entry("the patch was applied", "")
			_, s.Line = t.ended(m.CallID, 0, 0, "")
		} else {
			log.Entry("the patch was not applied:", m.Stderr)
			_, s.Line = t.ended(m.CallID, 1, 0, m.Stderr)
			t.commands.ran = true
		}
		if t.status != ending && !t.over() {
			t.folder.patches.End(m)
			t.failed.end(m, &t.dropped.Refused)
		}
	case protocol.MCPToolCallBegin: // without its arguments, which may contain secrets
		tool, server := transcript.Line(m.Invocation.Tool), transcript.Line(m.Invocation.Server)
		log.Entry("tool "+tool+" of the MCP server "+server, "")
		s.Doing = "calling " + m.Invocation.Server + "/" + m.Invocation.Tool
		s.Line = t.begins(m, m.CallID, approval.Tool{Name: m.Invocation.Server + "/" + m.Invocation.Tool})
		t.commands.ran = true
	case protocol.MCPToolCallEnd:
		if m.Result.Err == nil {
			_, s.Line = t.ended(m.CallID, 0, m.Duration, "")
		} else {
			log.Entry("tool "+transcript.Line(m.Invocation.Tool)+" failed", "")
			_, s.Line = t.ended(m.CallID, 1, m.Duration, *m.Result.Err)
		}
	case protocol.TurnDiff:
		t.folder.diff = m.UnifiedDiff
	case protocol.PlanUpdate:
		log.Plan(m.Plan)
		t.plan, t.tokens.answered = m.Plan, true
	case protocol.WebSearchEnd:
		log.Entry("web search:", m.Query)
	case protocol.ViewImageToolCall:
		log.Entry("image: "+transcript.Line(m.Path), "")
		t.tokens.answered = true
	}
}

// begins records the beginning of a call that does an action, which may change files, and returns its line.
func (t *Turn) begins(m protocol.EventMsg, call string, a approval.Action) *record.Line {
	c := &t.commands
	t.tokens.answered, c.acted = true, c.acted || Changes(m)
	begun := &open{grant: c.approved[call]}
	delete(c.approved, call) // a decision allows one call
	c.open[call] = begun
	return &record.Line{Event: record.Begins, Call: call, DecisionID: begun.id, Facts: a.Facts(false)}
}

// ended records the end of a call, and returns its line, and the command that it was, if any.
func (t *Turn) ended(
	call string, exit int, took protocol.Duration, words string,
) (command *protocol.Command, line *record.Line) {
	line = &record.Line{
		Event: record.Ends, Call: call,
		Outcome: record.Outcome{Exit: &exit, Took: time.Duration(took).Milliseconds(), Words: plain.Status(words)},
	}
	if begun := t.commands.open[call]; begun != nil {
		command, line.DecisionID = begun.command, begun.id
	}
	delete(t.commands.open, call)
	return command, line
}

// ruled records what was refused or allowed without a question, and returns its line.
func (t *Turn) ruled(m protocol.BackgroundEvent) *record.Line {
	r, decision := m.Refused, elicit.Denied
	if m.Allowed != nil {
		decision = elicit.Approved
	}
	if r == nil {
		r = m.Allowed
	} else {
		t.failed.forget(r.CallID)
		by := cmp.Or(approval.Decider(r.By), approval.ByPolicy)
		t.refuse(approval.ActionOf(r), r.Reason, by, string(by))
	}
	return &record.Line{
		Event: record.Decided, Call: r.CallID, Facts: approval.ActionOf(r).Facts(m.Allowed != nil),
		Verdict: record.Verdict{
			Decision: string(decision), By: cmp.Or(r.By, string(approval.ByPolicy)), Detail: r.Reason,
		},
	}
}

// refuse records what was not approved, why in words for the model, by whom and for which reason.
func (t *Turn) refuse(a approval.Action, why string, by approval.Decider, reason string) {
	r := a.Refusal()
	r.Cwd, r.Why = t.cwd(r.Cwd), plain.Short(why, plain.MaxWords)
	r.By, r.Reason = plain.Short(string(by), plain.MaxName), reason
	t.refused = keep(append(t.refused, r), &t.dropped.Refused)
}

// Open records a question. The turn does not wait for one whether a denial is overruled.
func (t *Turn) Open(r *approval.Request) {
	if r.Subject.Effect() == approval.Overrules {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.now.questions) == 0 {
		t.now.asked = time.Now()
	}
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
	t.answer.stopped = t.answer.stopped || d.Decision == elicit.Abort
	t.remark(d.Remarks...)
	effect := r.Subject.Effect()
	if effect == approval.Overrules { // the denial is known
		return
	}
	t.now.questions = slices.DeleteFunc(t.now.questions, func(q *approval.Request) bool { return q == r })
	if len(t.now.questions) == 0 {
		t.now.where = ""
	}
	if effect != approval.Reaches { // its command runs on
		t.now.do(thinking, "")
	}
	t.now.change()
	call := r.Subject.Call()
	if effect == approval.Begins && call != "" {
		t.commands.decided(call, d.Decision, grant{d.By, d.ID})
	}
	if d.Decision.Approves() {
		return
	}
	t.failed.forget(call)
	t.refuse(r.Subject, d.ForModel(), d.By, string(d.Reason))
}
