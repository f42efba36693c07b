package mcptool

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
	Prompt *string `json:"prompt"`
	names
	turnArguments
	Background   bool   `json:"background"`
	WhileRunning policy `json:"while-running"`
	Rollback     int    `json:"rollback"`
	Compact      bool   `json:"compact"`
	Fork         bool   `json:"fork"`
}

// shortenNames are the names of the arguments that make the history shorter.
var shortenNames = []string{"compact", "rollback"}

func (a *replyArguments) check() error {
	if err := a.checkTurn(); err != nil {
		return err
	}
	shortens := a.Compact || a.Rollback > 0
	if a.Prompt == nil && !shortens {
		return errors.New("argument /prompt is missing")
	}
	if shortens && (a.WhileRunning == steerTurn || a.WhileRunning == interruptTurn) {
		return errors.New("argument /while-running: no turn may run when compact or rollback change the history; stop it with codex-interrupt, or wait for its end")
	}
	if a.Fork && a.WhileRunning != "" && a.WhileRunning != queueTurn {
		return errors.New("argument /while-running: no turn runs in a copy; leave it out with fork")
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

// turnInput returns the input of the turn. Without a prompt and images, one that changes the
// history does only that.
func (a *replyArguments) turnInput(cwd string, b bounds) (protocol.TurnInput, error) {
	prompt := ""
	if a.Prompt != nil {
		prompt = *a.Prompt
	}
	in, err := a.input(prompt, cwd, b)
	in.Rollback, in.Compact = a.Rollback, a.Compact
	if in.Shortens() && prompt == "" && len(a.Images) == 0 {
		in.Items = nil
	}
	return in, err
}

func (t *Table) callReply(ctx context.Context, c *call, a *replyArguments) *mcptypes.CallToolResult {
	id, err := a.thread()
	if err != nil {
		return failure("", "codex-reply: "+err.Error())
	}
	job := c.newJob(c.attendance(a.Background))
	job.kept.Budget = a.Budget
	open := t.revive
	if a.Fork {
		open = t.fork
		job.log.Remark("This is a copy of the conversation " + id + ", which stays as it is. Continue the copy.")
	}
	th, err := open(ctx, c, id, job)
	if err == nil {
		id = th.ID()
	}
	if err != nil {
		return notBegun(ctx, "codex-reply", id, err)
	}
	in, err := a.turnInput(th.Info().Cwd, t.options.bounds())
	if err == nil && in.Shortens() && !th.Shortens() {
		err = errors.New("arguments /compact and /rollback: this engine keeps its own history")
	}
	if err != nil {
		return failure(id, "codex-reply: "+err.Error())
	}
	if len(in.Items) > 0 {
		job.form.schema, job.kept.Schema = a.schema, jsontext.Value(a.OutputSchema)
	}
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
			return job.interim(Running, "The running turn has the message. Its result comes where the turn was asked for; codex-wait has that of one in the background.")
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
		defer c.visit(other, c.newWaiter())()
	}
	job.before = c.Jobs.lost(id)
	c.read = append(c.read, job.before...)
	return c.run(ctx, job, th, in, a.Background)
}
