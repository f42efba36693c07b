package native

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Between turns other servers may continue a conversation's rollout. After [Limits.Idle]
// without a turn the conversation is unloaded, and its next turn reads the history from
// the rollout. Its configuration stays in memory, so that nothing in a file can loosen it.

// claim keeps other servers from writing to a rollout until release is called. It fails
// with a [*rollout.HeldError] when another server has the rollout.
func (e *Engine) claim(path string) (release func(), err error) {
	release, err = e.locks.Acquire(path)
	var held *rollout.HeldError
	if err == nil || errors.As(err, &held) {
		return release, err
	}
	e.warn(fmt.Sprintf("conversations cannot be locked; another server could write to one at the same time: %v", err))
	return func() {}, nil
}

// holder returns an error that names the server that runs a turn of a conversation, or nil.
func (e *Engine) holder(ctx context.Context, conversationID string) error {
	path, err := rollout.Find(ctx, e.options.CodexHome, conversationID)
	if err != nil {
		return nil // nobody can have it
	}
	if held := e.locks.Holder(path); held != nil && !held.Own {
		return held
	}
	return nil
}

// finishStart ends the start of a conversation: it writes what is left and starts the idle
// timer.
func (c *conversation) finishStart() {
	c.use.Lock()
	defer c.use.Unlock()
	c.flush()
	c.startIdle()
}

// flush writes the lines that are missing in the rollout.
func (c *conversation) flush() {
	c.saved.gone = false
	c.addNews(c.writeNews(c.saved.file.Flush()))
}

// startIdle starts the idle timer, or starts it again.
func (c *conversation) startIdle() {
	idle := c.engine.options.Limits.Idle
	switch {
	case idle <= 0:
	case c.work.idle == nil:
		c.work.idle = time.AfterFunc(idle, c.unload)
	default:
		c.work.idle.Reset(idle)
	}
}

// addNews keeps a message for the user until the next turn.
func (c *conversation) addNews(news string) {
	if news != "" {
		c.news = append(c.news, news)
	}
}

// unload frees the memory and the MCP servers of an idle conversation, and forgets what
// was approved for the session.
func (c *conversation) unload() {
	if !c.use.TryLock() {
		return // a turn runs
	}
	defer c.use.Unlock()
	if c.work.life.Err() != nil || c.history.unloaded {
		return
	}
	c.box.Forget()
	if !c.readable() {
		c.startIdle()
		return
	}
	c.work.servers.close(c.engine.options.Logger)
	c.work.servers = noServers()
	c.history.items, c.history.unloaded = nil, true
	c.engine.options.Logger.Debug("an idle conversation was unloaded", "conversation", c.ID())
}

// readable reports whether the rollout has the conversation's whole history.
func (c *conversation) readable() bool {
	release, err := c.engine.claim(c.saved.file.Path())
	if err != nil {
		return false
	}
	defer release()
	c.saved.gone = false
	err = c.saved.check(c.engine.options.CodexHome)
	if errors.Is(err, rollout.ErrGone) {
		c.addNews(c.writeNews(err)) // writes it again
		err = c.saved.check(c.engine.options.CodexHome)
	}
	if errors.Is(err, rollout.ErrChanged) {
		err = nil // it has the history, and more
	}
	c.addNews(c.writeNews(err))
	return err == nil && c.saved.file.Whole()
}

// refresh reads the history from the rollout if the conversation was unloaded or another
// program has continued it.
func (c *conversation) refresh() error {
	for _, news := range c.news {
		c.host.Emit(protocol.BackgroundEvent{Message: news})
	}
	c.news, c.saved.gone = nil, false
	err := c.saved.check(c.engine.options.CodexHome)
	var news string
	switch {
	case errors.Is(err, rollout.ErrChanged):
		news = "another program has written to this conversation's file; the conversation continues from there"
	case c.history.unloaded && errors.Is(err, rollout.ErrGone):
		news = "this conversation's file was cut; the conversation continues from what is left"
	case !c.history.unloaded:
		c.checkWrite(err)
		return nil
	}
	old, err := c.reload()
	switch {
	case err != nil && c.history.unloaded:
		return fmt.Errorf("the conversation was unloaded while it was idle, and its file cannot be read: %w", err)
	case err != nil:
		return fmt.Errorf("another program has written to the conversation's file, and it cannot be read: %w", err)
	}
	c.checkWrite(nil)
	c.providers.at = 0 // the file is for the configured provider
	if c.history.unloaded {
		c.startServers()
		c.history.unloaded = false
	}
	if news != "" {
		c.box.Forget()
		c.meter.usage = old.Usage
		c.host.Emit(protocol.BackgroundEvent{Message: news})
		c.catchUp(old)
	}
	return nil
}

// reload reads the history from the rollout.
func (c *conversation) reload() (*rollout.Rollout, error) {
	path := c.saved.file.Path()
	file, err := rollout.Open(path, c.engine.options.Store)
	if err != nil {
		return nil, err
	}
	old, err := load(path)
	if err != nil {
		return nil, err
	}
	if old.Meta.ID != c.ID() {
		return nil, fmt.Errorf("%s belongs to another conversation", path)
	}
	c.saved.file = file
	c.remember(old, 0)
	return old, nil
}
