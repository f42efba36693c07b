package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// replyTool continues a conversation. Older clients write conversationId or sessionId
// instead of threadId.
var replyTool = &tool{
	name: "codex-reply", title: "Codex Reply", turn: true, open: true, hints: &works,
	description: "Continue a conversation that codex began: a correction, an answer, the next step. " +
		"Codex remembers what was said and done.",
	purpose:   "say more in a conversation (threadId): an answer, a correction, the next step.",
	arguments: func() arguments { return new(replyArguments) },
	result: func() *schema {
		o := resultOf[protocol.TurnResult](func(name string, member *schema) bool {
			*member = schema{Type: member.Type}
			return !ofReview(name)
		})
		o.Description = "The members are those of codex's result."
		return o
	},
	about: []string{
		"budget", "Of this turn. It stops there; codex-reply continues.",
		"check", "As codex's, for this turn.", "output-schema", "As codex's, for this answer.", "images", "",
	},
}

type replyArguments struct {
	Prompt   string `json:"prompt" required:"true" about:"What to say next."`
	ThreadID string `json:"threadId" about:"Of codex's result."`
	oldNames
	turnArguments
	Effort       protocol.ReasoningEffort `json:"effort" about:"As codex's, from now on."`
	Background   bool                     `json:"background" about:"Answer at once; see codex-wait."`
	WhileRunning string                   `json:"while-running" enum:"queue,steer,interrupt" about:"If Codex still works: queue (default) waits, steer sends it the prompt now, interrupt stops it first."`
}

// oldNames are the names that threadId had.
type oldNames struct {
	ConversationID string `json:"conversationId" about:"Old threadId."`
	SessionID      string `json:"sessionId" about:"Old threadId."`
}

func (a *replyArguments) check() error {
	if err := a.turnArguments.check(); err != nil {
		return err
	}
	if err := checkEffort(a.Effort); err != nil {
		return err
	}
	if a.WhileRunning == "steer" {
		for name, given := range map[string]bool{
			"effort": a.Effort != "", "budget": a.Budget != nil, "check": a.Check != "",
			"output-schema": a.OutputSchema != nil,
		} {
			if given {
				return fmt.Errorf("argument /%s: a running turn keeps its own; leave it out, or do not steer", name)
			}
		}
	}
	return nil
}

// thread returns the id in the arguments in its canonical form. Named is the argument threadId.
func (a *oldNames) thread(named string) (string, error) {
	ids := []string{thread.CanonicalID(named), thread.CanonicalID(a.ConversationID), thread.CanonicalID(a.SessionID)}
	id := cmp.Or(ids...)
	if slices.ContainsFunc(ids, func(other string) bool { return other != "" && other != id }) {
		return "", errors.New("arguments /threadId, /conversationId and /sessionId name different conversations")
	}
	if id == "" {
		return "", errors.New("argument /threadId is missing")
	}
	return id, nil
}

// steered is the text of a call whose prompt a running turn has.
const steered = "The running turn has the message. " +
	"Its result comes where the turn was asked for; codex-wait has that of one in the background."

func (a *replyArguments) run(ctx context.Context, c *Call) (_ *mcptypes.CallToolResult, err error) {
	if c.named, err = a.thread(a.ThreadID); err != nil {
		return nil, err
	}
	b, attend := c.newTurn(a.Background)
	th, err := c.revive(ctx, c.named, protocol.Config{}, attend)
	if err != nil {
		return nil, err
	}
	c.named, b.Order.Thread = th.ID(), th.ID()
	in, err := a.begin(c.table, b, a.Prompt, th.Info().Cwd)
	if err != nil {
		return nil, err
	}
	in.Effort = a.Effort
	c.table.commits(b, th, a.Prompt)
	switch a.WhileRunning {
	case "steer":
		err := th.Steer(ctx, in.Items)
		if err == nil {
			return b.interim(protocol.StatusRunning, steered), nil
		}
		if !errors.Is(err, engine.ErrNoTurn) { // otherwise the message is a turn of its own
			return nil, err
		}
	case "interrupt":
		if _, err := th.Interrupt(ctx); err != nil {
			return nil, err
		}
	}
	if !a.Background {
		c.attachBefore(th.ID())
	}
	// A reply also acknowledges abandoned turns.
	c.reads(c.Turns.all(func(t *begun) bool { return t.isOf(c.named) && !t.answered && !t.background })...)
	return c.run(ctx, b, th, attend, in), nil
}

// attachBefore makes the client a place for the questions of the turn that the call has to wait for. It is not asked
// those of a call that it gave up: that call ends with its question.
func (c *Call) attachBefore(id string) {
	before := c.Turns.all(func(t *begun) bool { return !t.over() && t.isOf(id) })
	if len(before) > 0 && (before[0].owner != c.Turns || before[0].polled || before[0].inBackground()) {
		c.asked = c.attach(before[0])
	}
}
