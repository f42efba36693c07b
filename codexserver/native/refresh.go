package native

import (
	"context"
	"errors"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Between turns other programs may continue a conversation's rollout. The next turn then reads
// the history from there. The configuration stays as it is, so that nothing in a file can loosen it.

// claim keeps other servers from writing to a rollout until it is released. It fails with [rollout.ErrClaimed] when
// another one has it.
func (e *Engine) claim(w *rollout.Writer) error {
	err := w.Claim()
	if err == nil || errors.Is(err, rollout.ErrClaimed) {
		return err
	}
	e.warn(fmt.Sprintf("conversations cannot be locked; another server could write to one at the same time: %v", err))
	return nil
}

// release ends the claim of a turn.
func (c *conversation) release() {
	if err := c.saved.file.Release(); err != nil {
		c.checkWrite(err)
	}
}

// holder returns [rollout.ErrClaimed] while a turn of a conversation runs, or a program holds its file, or nil.
func (e *Engine) holder(ctx context.Context, conversationID string) error {
	path, err := rollout.Find(ctx, e.options.CodexHome, conversationID)
	if err != nil {
		return nil // nobody can have it
	}
	return rollout.Claimed(path)
}

// tell informs the user: at once in a turn, otherwise when the next one begins.
func (c *conversation) tell(news string) {
	if !c.running {
		c.news = append(c.news, news)
		return
	}
	c.host.Emit(protocol.BackgroundEvent{Message: news})
}

// refresh reads the history from the rollout if another program has continued it.
func (c *conversation) refresh() error {
	for _, news := range c.news {
		c.tell(news)
	}
	c.news = nil
	err := c.saved.file.Check()
	if !errors.Is(err, rollout.ErrChanged) {
		c.checkWrite(err)
		return nil
	}
	old, err := c.reload()
	if err != nil {
		return fmt.Errorf("another program has written to the conversation's file, and it cannot be read: %w", err)
	}
	c.checkWrite(nil)
	c.providers.at = 0 // the file is for the configured provider
	c.box.Forget()
	c.meter.usage = old.Usage
	c.tell("another program has written to this conversation's file; the conversation continues from there")
	c.catchUp(old)
	return nil
}

// reload reads the history from the rollout.
func (c *conversation) reload() (old *rollout.Rollout, err error) {
	err = c.saved.file.Take(func() error {
		path := c.saved.file.Path()
		if old, err = load(path); err == nil && old.Meta.ID != c.ID() {
			err = fmt.Errorf("%s belongs to another conversation", path)
		}
		return err
	})
	if err == nil {
		c.remember(old)
	}
	return old, err
}
