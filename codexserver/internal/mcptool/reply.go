package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/report"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// replyTool continues a conversation. Older clients write conversationId or sessionId
// instead of threadId.
const replyTool = `{
	"name": "codex-reply",
	"title": "Codex Reply",
	"description": "Continue a conversation that codex began: a correction, an answer, the next step. Codex remembers what was said and done before.",
	"inputSchema": {
		"type": "object",
		"required": ["prompt"],
		"properties": {
			"prompt": {"type": "string", "description": "What to say next."},
			"threadId": {"type": "string", "description": "Of codex's result."},
			"conversationId": {"type": "string", "description": "Old name of threadId."},
			"sessionId": {"type": "string", "description": "Old name of threadId."},
			` + budgetProperty + `,
			"background": {"type": "boolean", "description": "Answer at once; codex-wait has the result."},
			"effort": {"type": "string", "description": "As codex's, from now on."},
			"output-schema": {"type": "object", "description": "As codex's, for this answer."},
			"images": {"type": "array", "items": {"type": "string"}},
			"while-running": {"type": "string", "enum": ["queue", "steer", "interrupt"], "description": "If Codex still works: queue (default) waits for its end, steer sends it the prompt now, interrupt stops it first."}
		}
	},
	"outputSchema": ` + report.ShortSchema + `,
	"annotations": ` + annotations + `
}`

type replyArguments struct {
	Prompt         *string `json:"prompt"`
	ThreadID       string  `json:"threadId"`
	ConversationID string  `json:"conversationId"`
	SessionID      string  `json:"sessionId"`

	turnArguments
	Background   bool    `json:"background"`
	WhileRunning *policy `json:"while-running"`
}

// check finds what is wrong with the arguments, apart from the thread's id.
func (a *replyArguments) check() error {
	if a.Prompt == nil {
		return errNoPrompt
	}
	if err := oneOf("while-running", a.WhileRunning, []policy{queueTurn, steerTurn, interruptTurn}); err != nil {
		return err
	}
	if err := a.checkTurn(); err != nil {
		return err
	}
	if a.WhileRunning != nil && *a.WhileRunning == steerTurn {
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
func (a *replyArguments) thread() (string, error) {
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

func (t *Table) callReply(ctx context.Context, c *Call, raw json.RawMessage) *mcptypes.CallToolResult {
	var a replyArguments
	err := decodeArguments(raw, &a)
	if err == nil {
		err = unlocked(raw, t.locked["codex-reply"])
	}
	if err == nil {
		err = checkSpelling(raw)
	}
	if err != nil {
		return failure("", "codex-reply: "+err.Error())
	}
	id, err := a.thread()
	if err != nil {
		return failure("", "codex-reply: "+err.Error())
	}
	if err := a.check(); err != nil {
		return failure(id, "codex-reply: "+err.Error())
	}
	job := c.newJob(c.attendance(a.Background))
	job.meter.budget = a.Budget
	th, err := t.revive(ctx, c, id, job)
	if err != nil {
		return notBegun(ctx, "codex-reply", id, err)
	}
	in, err := a.input(*a.Prompt, th.Info().Cwd, t.bounds)
	if err != nil {
		return failure(id, "codex-reply: "+err.Error())
	}
	job.schema = a.schema
	if a.WhileRunning != nil {
		switch *a.WhileRunning {
		case steerTurn:
			if a.Budget != nil {
				if th.Busy() {
					return failure(id, "codex-reply: "+errSteeredBudget.Error())
				}
				break // the message is a turn of its own
			}
			err = th.Steer(ctx, in.Items)
			if err == nil {
				return interim(id, Running, "The running turn has the message. Its result comes where the turn was asked for; codex-wait has that of one in the background.")
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
	}
	return c.run(ctx, job, th, in, a.Background)
}
