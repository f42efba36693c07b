package thread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/text"
)

const (
	maxTries  = 3                // how often the model works at a turn whose check fails
	checkTime = 10 * time.Minute // how long a check may take by default
)

// checks is the state of a turn that has a check.
type checks struct {
	held    bool                 // there may be a further try, so clients do not get the begin and the end of a turn of the engine
	end     protocol.EventMsg    // of the engine's last turn until the next one begins, which clients get when the turn has ended
	letters []protocol.InputItem // that came meanwhile
}

// holds keeps the begin and the end of a turn of the engine from clients: to them the tries are one turn. The caller
// holds t.mu.
func (q *seat) holds(m protocol.EventMsg) bool {
	c := &q.checks
	if !c.held {
		return false
	}
	switch m.(type) {
	case protocol.TaskStarted:
		again := c.end != nil
		c.end = nil
		return again
	case protocol.TaskComplete, protocol.TurnAborted:
		c.end = m
		return true
	}
	return false
}

// tries runs a turn of the engine, and again while its check fails.
func (t *Thread) tries(ctx context.Context, q *seat, in protocol.TurnInput) error {
	if len(q.Turn.Order.Checks) == 0 {
		return t.conversation.Turn(ctx, in)
	}
	checker, is := t.conversation.(engine.Checker)
	if !is {
		return t.refuse("this engine runs no checks: leave out the argument check, and the key calls.check")
	}
	c := &q.checks
	t.mu.Lock()
	c.held = true
	t.mu.Unlock()
	defer func() { // also after a panic
		t.mu.Lock()
		c.held = false
		t.mu.Unlock()
		if len(c.letters) > 0 {
			t.Emit(protocol.BackgroundEvent{Message: "the turn ended before the model read all messages to it; those that came while the check ran are not in the conversation"})
		}
		if c.end != nil {
			t.Emit(c.end)
		}
	}()
	for try := q.Turn.Order.Tries + 1; ; try++ {
		if err := t.conversation.Turn(ctx, in); err != nil {
			return err
		}
		next, err := t.check(ctx, q, checker, try)
		if next == nil || err != nil {
			return err
		}
		in.Items, in.Continue, in.Effort, in.Again = next, nil, "", true
	}
}

// check runs the checks of a turn, at one of its tries, until one does not pass. It returns the input of the next try, nil
// if the turn is over.
func (t *Thread) check(ctx context.Context, q *seat, checker engine.Checker, try int) ([]protocol.InputItem, error) {
	words, passed, again := "", true, false
	for i, line := range q.Turn.Order.Checks {
		id := fmt.Sprintf("check-%s-%d-%d", q.id, try, i)
		q.Turn.Checking(id, line, try)
		why, err := checker.Check(ctx, id, line, cmp.Or(max(q.Turn.Order.CheckTime, 0), checkTime))
		if err = cmp.Or(context.Cause(ctx), err); err != nil {
			t.Emit(protocol.TurnAborted{Reason: protocol.AbortInterrupted})
			if !errors.As(err, new(*engine.AbortError)) {
				err = &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: err}
			}
			return nil, err
		}
		if words, passed, again = q.Turn.Checked(why); !passed {
			break
		}
	}
	t.mu.Lock()
	letters := q.checks.letters
	q.checks.letters, q.checks.held = nil, letters != nil || again && try < maxTries
	t.mu.Unlock()
	if letters != nil {
		t.Emit(protocol.UserMessage{Message: protocol.TextOf(letters), Kind: protocol.UserPlain})
	} else if !again || try >= maxTries {
		return nil, nil
	}
	return append(protocol.TextInput(text.Tagged("check", words)), letters...), nil
}
