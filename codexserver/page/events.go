package page

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	utf8text "github.com/codexmcp/codexmcp/internal/text"
)

// Event implements approval.Desk.
func (p *Page) Event(t approval.Thread, m protocol.EventMsg) {
	b := &p.board
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.conversation(t)
	if s, ok := m.(protocol.SessionConfigured); ok {
		c.Model = utf8text.Brief(s.Model, 200)
		switch {
		case len(c.entries) == 0:
			b.past(c, s.InitialMessages)
		case c.State == stateClosed: // it was resumed; a turn that still runs stays as it is
			c.State = ""
		}
		b.touch(c, nil)
		return
	}
	b.event(c, m)
}

// Name implements approval.Desk.
func (p *Page) Name() approval.Decider { return approval.ByPage }

// Ask implements approval.Desk.
func (p *Page) Ask(ctx context.Context, r *approval.Request) (json.RawMessage, error) {
	select {
	case <-p.done:
		return nil, errClosed
	default:
	}
	q, err := p.board.ask(ctx, r)
	if err != nil {
		return nil, err
	}
	if !p.Watched() {
		p.announce()
	}
	select {
	case raw := <-q.answered:
		return raw, nil
	case <-ctx.Done():
		return p.board.withdraw(q, context.Cause(ctx))
	case <-p.done:
		return p.board.withdraw(q, errClosed)
	}
}

// Decided implements approval.Desk.
func (p *Page) Decided(r *approval.Request, d approval.Decision) {
	p.board.decided(r, end{
		State: stateDecided, Decision: d.Decision, By: d.By, Reason: d.Reason, Rule: d.RuleWords,
		Feedback: elicit.ShowText(d.Feedback),
	})
}

// maxPast is how many events of a resumed conversation's past are shown.
const maxPast = 200

// past shows the end of a resumed conversation's history.
func (b *board) past(c *conversation, raws []json.RawMessage) {
	for _, raw := range raws[max(0, len(raws)-maxPast):] {
		if m, err := protocol.ParseEvent(raw); err == nil {
			b.event(c, m)
		}
	}
	b.endTurn(c)
	c.State = ""
}

// event adds an event to a conversation.
func (b *board) event(c *conversation, m protocol.EventMsg) {
	switch m := m.(type) {
	case protocol.UserMessage:
		if m.Kind != "" && m.Kind != protocol.UserPlain {
			return
		}
		b.endTurn(c)
		c.State, c.live.failed = stateRunning, false
		if c.Task == "" {
			c.Task = utf8text.Brief(m.Message, 2000)
		}
		b.add(c, &entry{Kind: kindUser, body: text(m.Message)})
	case protocol.TaskStarted:
		c.State = stateRunning
		b.touch(c, nil)
	case protocol.TaskComplete:
		c.State = ""
		b.endTurn(c)
		if !c.live.failed {
			words := "Done"
			if m.Incomplete != "" {
				words = "The answer is incomplete: " + m.Incomplete
			}
			b.add(c, &entry{Kind: kindEnd, body: text(words)})
		}
		b.touch(c, nil)
	case protocol.TurnAborted:
		c.State = ""
		b.endTurn(c)
		b.add(c, &entry{Kind: kindEnd, body: text("Stopped")})
	case protocol.ShutdownComplete:
		c.State = stateClosed
		b.endTurn(c)
		b.touch(c, nil)

	case protocol.AgentMessageDelta:
		c.live.speech = b.say(c, c.live.speech, kindAgent, m.Delta)
	case protocol.AgentMessage:
		b.said(c, c.live.speech, kindAgent, m.Message)
		c.live.speech = nil
	case protocol.AgentReasoningDelta:
		c.live.thought = b.say(c, c.live.thought, kindReasoning, m.Delta)
	case protocol.AgentReasoningSectionBreak:
		if c.live.thought != nil {
			c.live.thought = b.say(c, c.live.thought, kindReasoning, "\n\n")
		}
	case protocol.AgentReasoning:
		b.said(c, c.live.thought, kindReasoning, m.Text)
		c.live.thought = nil

	case protocol.PlanUpdate:
		b.planned(c, m)
	case protocol.TurnDiff:
		if c.live.diff == nil {
			c.live.diff = b.add(c, &entry{Kind: kindDiff})
		}
		c.live.diff.body = text(m.UnifiedDiff)
		b.touch(c, c.live.diff)
	case protocol.BackgroundEvent:
		words := m.Message
		if words == "" && m.Refused != nil {
			words = "Refused by the engine: " + m.Refused.Reason
		}
		b.add(c, &entry{Kind: kindNote, body: text(words)})
	case protocol.ModelReroute:
		b.add(c, &entry{Kind: kindNote, body: text(m.Words())})
	case protocol.StreamError:
		b.add(c, &entry{Kind: kindNote, body: text(m.Message)})
	case protocol.Error:
		c.live.failed = true
		b.add(c, &entry{Kind: kindError, body: text(m.Message)})
	case protocol.WebSearchEnd:
		b.add(c, &entry{Kind: kindNote, body: text("Searched the web: " + m.Query)})
	case protocol.ViewImageToolCall:
		b.add(c, &entry{Kind: kindNote, body: text("Looked at the image " + m.Path)})
	default:
		b.callEvent(c, m)
	}
}

// callEvent adds an event of a command, a patch or a tool call.
func (b *board) callEvent(c *conversation, m protocol.EventMsg) {
	switch m := m.(type) {
	case protocol.ExecCommandBegin:
		b.begin(c, m.CallID, &entry{Kind: kindCommand, Title: utf8text.Brief(elicit.ShowCommand(m.Command), maxText), Cwd: utf8text.Brief(m.Cwd, maxBrief), body: output("")})
	case protocol.ExecCommandOutputDelta:
		if e := c.live.calls[m.CallID]; e != nil {
			e.body.add(string(m.Chunk))
			b.touch(c, e)
		}
	case protocol.ExecCommandEnd:
		b.finishCall(c, m.CallID, m.ExitCode, time.Duration(m.Duration), output(cmp.Or(m.AggregatedOutput, m.Stdout+m.Stderr)))
	case protocol.PatchApplyBegin:
		b.begin(c, m.CallID, &entry{Kind: kindPatch, Files: clipFiles(viewFiles(m.Changes, c.folder), maxText)})
	case protocol.PatchApplyEnd:
		exit, said := 0, ""
		if !m.Success {
			exit, said = 1, m.Stderr
		}
		b.finishCall(c, m.CallID, exit, 0, text(said))
	case protocol.MCPToolCallBegin:
		b.begin(c, m.CallID, &entry{Kind: kindTool, Title: utf8text.Brief(m.Invocation.Server+"/"+m.Invocation.Tool, 200), body: text(string(m.Invocation.Arguments))})
	case protocol.MCPToolCallEnd:
		exit, said := 0, string(m.Result.Ok)
		if m.Result.Err != nil {
			exit, said = 1, *m.Result.Err
		}
		b.finishCall(c, m.CallID, exit, time.Duration(m.Duration), text(string(m.Invocation.Arguments)+"\n"+said))
	}
}

// say adds a piece to the entry e, or to a new one if e is nil.
func (b *board) say(c *conversation, e *entry, kind, piece string) *entry {
	if e == nil {
		return b.add(c, &entry{Kind: kind, body: text(piece)})
	}
	e.body.add(piece)
	b.touch(c, e)
	return e
}

// said replaces the pieces in e by the whole text. If e is nil, it adds a new entry.
func (b *board) said(c *conversation, e *entry, kind, whole string) {
	if e == nil {
		if strings.TrimSpace(whole) != "" {
			b.add(c, &entry{Kind: kind, body: text(whole)})
		}
		return
	}
	e.body = text(whole)
	b.touch(c, e)
}

// planned shows a turn's plan in place of the previous one.
func (b *board) planned(c *conversation, m protocol.PlanUpdate) {
	if c.live.plan == nil {
		c.live.plan = b.add(c, &entry{Kind: kindPlan})
	}
	const most = 100
	c.live.plan.Steps = nil
	for _, s := range m.Plan[:min(len(m.Plan), most)] {
		c.live.plan.Steps = append(c.live.plan.Steps, step{utf8text.Brief(s.Step, 1000), utf8text.Brief(s.Status, 20)})
	}
	c.live.plan.body = body{}
	if m.Explanation != nil {
		c.live.plan.body = text(*m.Explanation)
	}
	b.touch(c, c.live.plan)
}

// begin adds the entry of a call.
func (b *board) begin(c *conversation, id string, e *entry) {
	c.live.begin(id, e)
	b.add(c, e)
}

// finishCall shows the end of a call.
func (b *board) finishCall(c *conversation, id string, exit int, took time.Duration, said body) {
	e := c.live.end(id)
	if e == nil {
		return
	}
	e.Running, e.Exit, e.Took, e.body = false, &exit, took.Milliseconds(), said
	b.touch(c, e)
}

// endTurn ends what the events of the turn may continue.
func (b *board) endTurn(c *conversation) {
	for e := range c.live.endAll() {
		e.Running = false
		b.touch(c, e)
	}
}
