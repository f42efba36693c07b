package native

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/cut"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// The conversation's file has the beginning and the end of a turn, and each call of the model before it
// does anything. If the process is killed in the turn, another one begins a turn that continues it: a message
// says which calls have no result. None of them runs again.

// canContinue returns why turns of processes that have ended cannot be continued, or nil.
func (e *Engine) canContinue(context.Context) error {
	cfg, err := e.config(protocol.Config{})
	if err != nil {
		return err
	}
	return e.client(cfg.ModelProvider, cfg.Provider()).Ready()
}

// ends records the end of a turn that has begun, before anybody is told. It fails if there is a store and it
// does not have the end: another process may end the turn otherwise.
func (t *turn) ends(end protocol.EventMsg) error {
	if t.id == "" {
		return nil
	}
	t.conv.checkWrite(t.conv.saved.file.Event(end))
	if t.conv.engine.options.Store == nil {
		return nil
	}
	err := t.conv.saved.file.Sync()
	if t.conv.checkWrite(err); err != nil {
		return fmt.Errorf("the turn has ended, and its end is not in the store: %w", err)
	}
	return nil
}

// act is called before a call does anything. It adds the response to the history. A turn that another
// process may continue does nothing that is not on the disk, because that process would not know of it.
func (t *turn) act() error {
	t.commit()
	if t.durable {
		t.conv.checkWrite(t.conv.saved.file.Durable())
	} else {
		t.conv.checkWrite(t.conv.saved.file.Sync())
	}
	return t.conv.saved.kept()
}

// asking is the host of a turn's tools. The conversation's file has a call before anybody is asked about it: if the
// process is killed meanwhile, the next one knows of the call, if it continues the turn.
type asking struct {
	engine.Host
	turn *turn
}

// Ask implements [engine.Host].
func (a asking) Ask(ctx context.Context, s approval.Subject) elicit.Outcome {
	if s.Effect() == approval.Begins {
		a.turn.asks()
	}
	return a.Host.Ask(ctx, s)
}

// asks is called before a question. A write that fails is repeated, and reported, before the call does anything.
func (t *turn) asks() {
	if t.durable {
		t.commit()
		t.conv.checkWrite(t.conv.saved.file.Sync())
	}
}

// goesOn returns the message of a turn that continues one whose process has ended, or the end of that
// turn if it has one.
func (c *conversation) goesOn(in protocol.TurnInput) (message []protocol.InputItem, over protocol.EventMsg, err error) {
	old, err := load(c.saved.file.Path())
	if err != nil {
		return nil, nil, err
	}
	ran := slices.ContainsFunc(old.Turns, func(t rollout.Turn) bool { return t.ID == in.Key })
	// such as of an older version, which set up no worktrees
	older := len(old.Turns) == 0 && old.Context != nil && len(in.Items) == 0
	if !ran && (old.Meta.Originator != originator || older) {
		return nil, nil, errors.New("the server ended before or while this turn ran, and another program may have " +
			"run it: what it has done is not known, and was not repeated; codex-reply continues the conversation")
	}
	turns := make([]cut.Turn, len(old.Turns))
	for i, t := range old.Turns {
		turns[i] = cut.Turn{
			Own: t.ID == in.Key && (t.Said || t.End != nil), Form: t.ID == cut.FormKey(in.Key),
			Said: t.Said, End: t.End,
		}
		for _, call := range unanswered(old.Items[max(len(old.Items)-t.Items, 0):]) {
			shown := cut.Of(call.Name, call.Arguments)
			if call.Shell != nil {
				shown.Command = call.Shell.Command
			}
			turns[i].Open = append(turns[i].Open, shown)
		}
	}
	last, err := cut.Last(turns)
	if errors.Is(err, cut.ErrNotBegun) && len(in.Items) > 0 {
		return in.Items, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if _, aborted := last.End.(protocol.TurnAborted); aborted { // nobody ended its calls but who aborted it
		return nil, last.End, nil
	}
	message = cut.Message(last.Open, in.Continue)
	if last.End != nil { // in a process that was killed before it could tell the caller of them
		return nil, last.End, nil
	}
	c.emit(cut.Event())
	return message, nil, nil
}

// unanswered returns the calls without an answer, in their order. Ids may repeat.
func unanswered(items []protocol.ResponseItem) (open []model.Call) {
	for _, item := range items {
		if call, ok := model.CallOf(item); ok {
			open = append(open, call)
		} else if answer, ok := model.AnswerOf(item); ok {
			if i := slices.IndexFunc(open, func(c model.Call) bool { return c.ID == answer.CallID }); i >= 0 {
				open = slices.Delete(open, i, i+1)
			}
		}
	}
	return open
}

// endAgain reports the end of a turn that ended just before its process did.
func (c *conversation) endAgain(end protocol.EventMsg) error {
	switch end := end.(type) {
	case protocol.TurnAborted:
		c.host.Emit(protocol.TurnAborted{Reason: end.Reason})
		return &engine.AbortError{Reason: end.Reason, Cause: errors.New("its server ended after that")}
	case protocol.Error:
		return c.fail(errors.New(end.Message))
	case protocol.TaskComplete:
		if end.LastAgentMessage != nil {
			c.host.Emit(protocol.AgentMessage{Message: *end.LastAgentMessage})
		}
		end.TurnID = ""
		c.host.Emit(end)
	}
	return nil
}
