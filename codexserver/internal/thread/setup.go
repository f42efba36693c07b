package thread

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// setUp sets up the worktree of a turn, before the model is asked. It returns the messages that came meanwhile. An error
// ends the turn.
func (t *Thread) setUp(ctx context.Context, q *seat) (letters []protocol.InputItem, err error) {
	checker, is := t.conversation.(engine.Checker)
	if !is {
		const words = "this engine sets up no worktrees: leave out the argument worktree, or the key calls.setup"
		return nil, t.refuse(words)
	}
	c := &q.checks
	t.mu.Lock()
	c.setting = true
	t.mu.Unlock()
	defer func() { // also after a panic
		t.mu.Lock()
		letters, c.letters, c.setting = c.letters, nil, false
		t.mu.Unlock()
		switch {
		case err != nil:
			t.unread(letters)
		case letters != nil:
			t.Emit(protocol.UserMessage{Message: protocol.TextOf(letters), Kind: protocol.UserPlain})
		}
	}()
	l := engine.Line{ID: "setup-" + q.id, Text: q.Turn.Order.Setup.Line, SetUp: true}
	q.Turn.SettingUp(l.ID, l.Text)
	why, err := t.runLine(ctx, q, checker, l)
	if err != nil {
		return nil, err
	}
	if err := q.Turn.SetUp(why); err != nil {
		return nil, t.refuse(err.Error())
	}
	q.Turn.Settled()
	return nil, nil
}
