package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/slots"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// attemptsArguments ask for several attempts at a task.
type attemptsArguments struct {
	Attempts int      `json:"attempts" max:"4" about:"2 to 4 tries at once, each in a worktree; the best by check is the result."`
	Models   []string `json:"models" about:"One for each attempt."`
}

func (a *attemptsArguments) check(model string) error {
	switch {
	case a.Models == nil:
	case model != "":
		return errors.New("argument /models: leave out model, or this one")
	case len(a.Models) != a.Attempts:
		return fmt.Errorf("argument /models: it has %d models for %d attempts (/attempts)", len(a.Models), a.Attempts)
	case slices.Contains(a.Models, ""):
		return errors.New("argument /models: a model without a name")
	}
	return nil
}

// share returns the part of a budget that each of n attempts has: an equal part of the tokens, and all the time.
func share(b *turn.Budget, n int) *turn.Budget {
	if b == nil || b.Tokens == nil || n < 2 {
		return b
	}
	part := *b
	part.Tokens = new(max(*b.Tokens/int64(n), 1))
	return &part
}

// attempts makes launches attempts of one call, if there are several. A person gets their questions one at a time.
func attempts(all []launch) {
	if len(all) < 2 {
		return
	}
	turns, inTurn := make([]*turn.Turn, len(all)), slots.New(1)
	for i := range all {
		turns[i] = all[i].Turn
		a := &all[i].attend
		a.Attempt, a.InTurn = fmt.Sprintf("attempt %d of %d", i+1, len(all)), inTurn
	}
	turn.Join(turns...)
}

// start starts the conversation of an attempt with its turn, which it does not begin.
func (a *codexArguments) start(ctx context.Context, c *Call, cfg protocol.Config, attempt int) (l launch, err error) {
	t := c.table
	l.leave = func() {}
	l.begun, l.attend = c.newTurn(a.Background)
	l.background = a.Background && attempt == 0
	if l.input, err = a.begin(t, l.begun, a.Prompt, cfg.Cwd); err != nil {
		return l, err
	}
	l.Order.Budget = share(a.Budget, a.Attempts)
	l.input.MaxTokens = maxTokens(l.Order.Budget)
	l.attend.Submission = c.Awaited.Submission
	if a.Models != nil {
		cfg.Model = a.Models[attempt]
	}
	if attempt == 0 {
		l.leave = c.leave
	} else if leave, err := t.limit.Enter(""); err != nil {
		return l, err
	} else {
		l.leave = leave
	}
	if a.Worktree || a.Attempts > 0 {
		if l.tree, err = t.addWorktree(ctx, cfg.Cwd); err != nil {
			return l, err
		}
		if line := t.options.Setup; line != "" {
			l.Order.Setup = &turn.Setup{Line: line, Items: l.input.Items}
		}
		tree := l.tree
		cfg.Cwd, cfg.Note = tree.Cwd, noteOf(tree)
		l.Remark(fmt.Sprintf("The conversation works in the git worktree %s, on the new branch %s.", tree.Path,
			tree.Branch))
	}
	l.thread, err = c.Threads.Start(ctx, t.Caller(c.Client, c.Roots), cfg, l.attend)
	if err == nil && l.tree != nil {
		if err = l.tree.Owner(l.thread.ID()); err != nil {
			err = errors.Join(err, c.Threads.End(context.WithoutCancel(ctx), l.thread.ID()))
		}
	}
	if err != nil {
		if l.tree != nil {
			err = errors.Join(err, l.tree.Remove(ctx))
		}
		return l, err
	}
	t.commits(l.begun, l.thread, a.Prompt)
	return l, nil
}

// drop ends conversations whose turns did not begin, and removes their worktrees.
func (c *Call) drop(ctx context.Context, all []launch) (err error) {
	ctx = context.WithoutCancel(ctx)
	for _, l := range all {
		err = errors.Join(err, c.Threads.End(ctx, l.thread.ID()))
		if l.tree != nil {
			err = errors.Join(err, l.tree.Remove(ctx))
		}
		l.leave()
	}
	return err
}

// continueAttempts is [Table.Continue] for several attempts. One that cannot go on has failed.
func (t *Table) continueAttempts(
	ctx context.Context, c *Call, before turn.Resume, background bool,
) (*mcptypes.CallToolResult, error) {
	var all []launch
	var failed error
	defer func() {
		for _, l := range all {
			l.leave() // unless the turn has it
		}
	}()
	for i, was := range before.Attempts {
		var l launch
		l.begun, l.attend = c.newTurn(false)
		l.background = background && i == 0
		var err error
		if l.leave, err = t.limit.Enter(""); err != nil {
			return nil, err
		}
		all = append(all, l)
		if was.Resume != nil {
			all[i].input = l.continues(was.Resume, &was.Did)
		}
		l.Order.Thread = was.Did.ThreadID
		all[i].thread, err = c.revive(ctx, was.Did.ThreadID, protocol.Config{Continues: true}, l.attend)
		if err == nil && was.Resume != nil {
			t.commits(l.begun, all[i].thread, was.Resume.Subject)
		}
		switch {
		case err != nil && was.Resume != nil:
			failed = errors.Join(failed, err)
			was.Did.Status, was.Did.Content = protocol.StatusFailed, "it could not go on: "+err.Error()
			fallthrough
		case was.Resume == nil:
			all[i].ended = true
			l.Turn.Ended(&was.Did)
		}
	}
	if !slices.ContainsFunc(all, func(l launch) bool { return l.thread != nil }) {
		return nil, failed
	}
	all[0].Order.Key = before.Key
	attempts(all)
	r := c.runAll(ctx, all[0], all[1:]...)
	all = nil
	return r, nil
}

// continues has a turn go on with what it did in another process, and returns its input.
func (b *begun) continues(before *turn.Resume, did *protocol.TurnResult) protocol.TurnInput {
	if before.Began.IsZero() {
		before.Began = time.Now()
	}
	b.Order.Resume = *before
	b.Turn.Continue(did, before.Began, before.Used)
	in := protocol.TurnInput{
		OutputSchema: []byte(before.Schema), MaxTokens: maxTokens(before.Budget),
		Continue: func(words string) { b.Remark(words) },
	}
	if before.Setup != nil { // the conversation does not have it yet
		in.Items = before.Setup.Items
	}
	return in
}
