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

// checks is the state of a turn of which the engine may run several: the work, as often as its check fails, and the form of
// its answer.
type checks struct {
	held    bool // another one may follow, so clients do not get begin and end of a turn of the engine
	forming bool // one runs in which the model gives its answer a form
	setting bool // up the worktree, before the first one
	// end is that of the engine's last turn until the next one begins. Clients get it when the turn has ended.
	end     protocol.EventMsg
	letters []protocol.InputItem // that came while the engine did not work
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
	case protocol.Error: // the work has not failed
		return c.forming
	}
	return false
}

// waits reports whether a message waits until the model works again. The caller holds t.mu.
func (c *checks) waits() bool { return c.setting || c.held && (c.end != nil || c.forming) }

// tries runs a turn of the engine, and again while its check fails. When the work is done, its answer gets its form.
func (t *Thread) tries(ctx context.Context, q *seat, in protocol.TurnInput) error {
	if q.Turn.Order.Setup != nil {
		letters, err := t.setUp(ctx, q)
		if err != nil {
			return err
		}
		in.Items = append(in.Items, letters...)
	}
	former, forms := t.conversation.(engine.Former)
	forms = forms && in.OutputSchema != nil
	checked := len(q.Turn.Order.Checks) > 0
	if !checked && !forms {
		return t.conversation.Turn(ctx, in)
	}
	checker, is := t.conversation.(engine.Checker)
	if checked && !is {
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
		t.unread(c.letters)
		if c.end != nil {
			t.Emit(c.end)
		}
	}()
	for try := q.Turn.Order.Tries + 1; ; try++ {
		if err := t.conversation.Turn(ctx, in); err != nil {
			return err
		}
		next, err := t.check(ctx, q, checker, try, forms)
		if next == nil && err == nil && forms {
			next, err = t.form(ctx, q, former, in)
		}
		if next == nil { // also after an error
			return err
		}
		in.Items, in.Continue, in.Effort, in.Again = next, nil, "", true
	}
}

// check runs the checks of a turn, at one of its tries, until one does not pass. It returns the input of the next try, nil
// if the work is over. Forms says that the form of its answer follows.
func (t *Thread) check(
	ctx context.Context, q *seat, checker engine.Checker, try int, forms bool,
) ([]protocol.InputItem, error) {
	words, passed, again := "", true, false
	for i, line := range q.Turn.Order.Checks {
		id := fmt.Sprintf("check-%s-%d-%d", q.id, try, i)
		q.Turn.Checking(id, line, try)
		why, err := t.runLine(ctx, q, checker, engine.Line{ID: id, Text: line})
		if err != nil {
			return nil, err
		}
		if words, passed, again = q.Turn.Checked(why); !passed {
			break
		}
	}
	again = again && try < maxTries
	letters := t.letters(q, again || forms)
	if letters == nil && !again {
		return nil, nil
	}
	if words != "" {
		letters = append(protocol.TextInput(text.Tagged("check", words)), letters...)
	}
	return letters, nil
}

// letters takes the messages with which the work goes on, and tells clients of them. Without any, the turn is over unless
// more follows.
func (t *Thread) letters(q *seat, follows bool) []protocol.InputItem {
	t.mu.Lock()
	letters := q.checks.letters
	q.checks.letters, q.checks.held = nil, letters != nil || follows
	t.mu.Unlock()
	if letters != nil {
		t.Emit(protocol.UserMessage{Message: protocol.TextOf(letters), Kind: protocol.UserPlain})
	}
	return letters
}

// runLine runs a line for a turn, and returns why that says nothing. An error aborts the turn.
func (t *Thread) runLine(ctx context.Context, q *seat, checker engine.Checker, l engine.Line) (why string, err error) {
	l.Limit = cmp.Or(max(q.Turn.Order.CheckTime, 0), checkTime)
	why, err = checker.Check(ctx, l)
	if err = cmp.Or(context.Cause(ctx), err); err == nil {
		return why, nil
	}
	t.Emit(protocol.TurnAborted{Reason: protocol.AbortInterrupted})
	if !errors.As(err, new(*engine.AbortError)) {
		err = &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: err}
	}
	return "", err
}

// unread says that messages to a turn, if there are any, were not read.
func (t *Thread) unread(letters []protocol.InputItem) {
	if len(letters) > 0 {
		t.Emit(protocol.BackgroundEvent{Message: "the turn ended before the model read all messages to it; " +
			"those that came while it did not work are not in the conversation"})
	}
}
