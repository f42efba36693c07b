package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json/jsontext"
)

// replyTool continues a conversation. Older clients write conversationId or sessionId
// instead of threadId.
//
//go:embed reply.json
var replyTool string

// names are the arguments that name a thread.
type names struct {
	ThreadID       string `json:"threadId"`
	ConversationID string `json:"conversationId"`
	SessionID      string `json:"sessionId"`
}

type replyArguments struct {
	Prompt string `json:"prompt"`
	names
	turnArguments
	Background   bool   `json:"background"`
	WhileRunning policy `json:"while-running"`
}

func (a *replyArguments) check() error {
	if err := a.checkTurn(); err != nil {
		return err
	}
	if a.WhileRunning == steerTurn {
		for name, given := range map[string]bool{"effort": a.Effort != "", "output-schema": a.schema != nil} {
			if given {
				return fmt.Errorf("argument /%s: a running turn keeps its own; leave it out, or do not steer", name)
			}
		}
	}
	return nil
}

// policy is what a reply does while a turn runs.
type policy string

const (
	queueTurn     policy = "queue"
	steerTurn     policy = "steer"
	interruptTurn policy = "interrupt"
)

// errSteeredBudget refuses a budget for a running turn, which may have one of another
// caller.
var errSteeredBudget = errors.New("argument /budget: it bounds a new turn, and the message was to go to the running one; leave out the budget, or let while-running be queue or interrupt")

// thread returns the id in the arguments in its canonical form.
func (a *names) thread() (string, error) {
	var id string
	for _, s := range []string{a.ThreadID, a.ConversationID, a.SessionID} {
		s = thread.CanonicalID(s)
		switch {
		case s == "" || s == id:
		case id == "":
			id = s
		default:
			return "", errors.New("arguments /threadId, /conversationId and /sessionId name different conversations")
		}
	}
	if id == "" {
		return "", errors.New("argument /threadId is missing")
	}
	return id, nil
}

func (t *Table) callReply(ctx context.Context, c *call, a *replyArguments) *mcptypes.CallToolResult {
	id, err := a.thread()
	if err != nil {
		return failure("", "codex-reply: "+err.Error())
	}
	job := c.newJob(c.attendance(a.Background))
	job.kept.Budget = a.Budget
	th, err := t.revive(ctx, c, id, job)
	if err == nil {
		id = th.ID()
	}
	if err != nil {
		return notBegun(ctx, "codex-reply", id, err)
	}
	in, err := a.input(a.Prompt, th.Info().Cwd, t.options.bounds())
	if err != nil {
		return failure(id, "codex-reply: "+err.Error())
	}
	job.form.schema, job.kept.Schema = a.schema, jsontext.Value(a.OutputSchema)
	switch a.WhileRunning {
	case steerTurn:
		if a.Budget != nil {
			if th.Busy() {
				return failure(id, "codex-reply: "+errSteeredBudget.Error())
			}
			break // the message is a turn of its own
		}
		err = th.Steer(ctx, in.Items)
		if err == nil {
			job.thread = th
			return job.interim(protocol.StatusRunning, "The running turn has the message. Its result comes where the turn was asked for; codex-wait has that of one in the background.")
		}
		if errors.Is(err, engine.ErrNoTurn) {
			err = nil // the message is a turn of its own
		}
	case interruptTurn:
		_, err = th.Interrupt(ctx)
	}
	if err != nil {
		return notBegun(ctx, "codex-reply", id, err)
	}
	// The question of a call that this client gave up is not asked again: that call ends with it.
	if other := c.Jobs.runs(id); other != nil && !a.Background && (other.delivery.owner != c.Jobs || other.delivery.durable || other.InBackground()) {
		defer c.visit(other)()
	}
	c.read = append(c.read, c.Jobs.passed(id)...)
	return c.run(ctx, job, th, in, a.Background)
}
