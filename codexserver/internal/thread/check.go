package thread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

const (
	// maxTries is how often the model works at a turn whose check fails.
	maxTries = 3
	// checkTime is how long a check may take by default, and endless stands for no limit.
	checkTime = 10 * time.Minute
	endless   = 365 * 24 * time.Hour
)

// checks is the state of a turn that has a check. Thread.mu guards it.
type checks struct {
	begun   bool                   // clients know that the turn has begun
	end     protocol.EventMsg      // of the engine's last turn, which clients get when the turn has ended
	running bool                   // the check runs
	letters [][]protocol.InputItem // messages that came meanwhile
}

// holds keeps the begin and the end of a turn of the engine from clients: to them its tries are one turn.
func (c *checks) holds(m protocol.EventMsg) bool {
	if c == nil {
		return false
	}
	switch m.(type) {
	case protocol.TaskStarted:
		begun := c.begun
		c.begun = true
		return begun
	case protocol.TaskComplete:
		c.end = m
		return true
	}
	return false
}

// Checks reports whether the engine runs checks.
func (t *Thread) Checks() bool {
	_, is := t.conversation.(engine.Checker)
	return is
}

// tries runs a turn of the engine, and again while its check fails.
func (t *Thread) tries(ctx context.Context, q *seat, in protocol.TurnInput) error {
	checker, is := t.conversation.(engine.Checker)
	if !is || len(q.Turn.Order.Checks) == 0 {
		return t.conversation.Turn(ctx, in)
	}
	c := &checks{}
	t.mu.Lock()
	q.checks = c
	t.mu.Unlock()
	defer func() { // also after a panic
		t.mu.Lock()
		end, left := c.end, len(c.letters)
		q.checks = nil
		t.mu.Unlock()
		if left > 0 {
			t.Emit(protocol.BackgroundEvent{Message: fmt.Sprintf("the turn ended before the model read all messages to it; %d are not in the conversation", left)})
		}
		if end != nil {
			t.Emit(end)
		}
	}()
	for {
		if err := t.conversation.Turn(ctx, in); err != nil {
			return err
		}
		next, err := t.check(ctx, q, checker)
		if err != nil {
			return t.abort(c, err)
		}
		if next == nil {
			return nil
		}
		in.Items, in.Continue, in.Effort, in.MaxTokens, in.Again = next, nil, "", q.Turn.TokensLeft(), true
		t.mu.Lock()
		c.end = nil
		t.mu.Unlock()
	}
}

// abort ends a turn between its tries.
func (t *Thread) abort(c *checks, err error) error {
	abort, is := errors.AsType[*engine.AbortError](err)
	if !is {
		abort = &engine.AbortError{Cause: err}
	}
	t.mu.Lock()
	c.end = protocol.TurnAborted{Reason: cmp.Or(abort.Reason, protocol.AbortInterrupted)}
	t.mu.Unlock()
	return abort
}

// check runs the checks of a turn until one does not pass. It returns the input of the next try, nil if the turn is over.
func (t *Thread) check(ctx context.Context, q *seat, checker engine.Checker) (next []protocol.InputItem, err error) {
	now := q.Turn
	limit := cmp.Or(now.Order.CheckTime, checkTime)
	if limit < 0 {
		limit = endless
	}
	words, passed, verdict := "", true, true
	for i, line := range now.Order.Checks {
		if !passed {
			break
		}
		t.checking(q, true)
		now.Checking(line)
		t.say(Event{Turn: now})
		out, err := checker.Check(ctx, engine.Check{ID: fmt.Sprintf("check-%s-%d-%d", q.id, now.Tries(), i), Line: line, Limit: limit})
		if err != nil {
			return nil, err
		}
		if words, passed, verdict = now.Checked(out); !passed && verdict {
			words += " Mend the cause and end your turn; the check runs again. Its output:\n" + out.Output
		}
	}
	tries := now.Tried()
	letters := t.checking(q, false)
	if letters == nil && (passed || !verdict || tries >= maxTries) {
		return nil, nil
	}
	next = protocol.TextInput("<check>\n" + words + "\n</check>")
	for _, l := range letters {
		t.Emit(protocol.UserMessage{Message: protocol.TextOf(l), Kind: protocol.UserPlain})
		next = append(next, l...)
	}
	return next, nil
}

// checking records whether the check runs, and returns the messages that came meanwhile.
func (t *Thread) checking(q *seat, runs bool) (letters [][]protocol.InputItem) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q.checks.running = runs
	if !runs {
		letters, q.checks.letters = q.checks.letters, nil
	}
	return letters
}
