package native

import (
	"errors"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// A conversation rests between its turns: other servers may then continue its rollout.
// When it has rested for [Limits.Idle] it is put away: what it remembers is read from its
// rollout by the next turn. All that it was started with stays in memory, so that nothing
// in a file can loosen it.

// claim keeps other servers from writing to a rollout until release is called. The
// error is a [*rollout.HeldError].
func (e *Engine) claim(path string) (release func(), err error) {
	release, err = e.locks.Acquire(path)
	var held *rollout.HeldError
	if err == nil || errors.As(err, &held) {
		return release, err
	}
	e.warn(fmt.Sprintf("another server can write to a conversation of this one at the same time: %v", err))
	return func() {}, nil
}

// ready lets a new conversation rest.
func (c *conversation) ready() {
	c.use.Lock()
	defer c.use.Unlock()
	c.settle()
	c.rest()
}

// settle writes what is missing in the rollout.
func (c *conversation) settle() {
	c.gone = false
	c.later(c.kept(c.file.Flush()))
}

// rest lets an unused conversation be put away.
func (c *conversation) rest() {
	idle := c.engine.limits.Idle
	switch {
	case idle <= 0:
	case c.idle == nil:
		c.idle = time.AfterFunc(idle, c.putAway)
	default:
		c.idle.Reset(idle)
	}
}

// later keeps what the user is to know for the next turn.
func (c *conversation) later(news string) {
	if news != "" {
		c.news = append(c.news, news)
	}
}

// putAway frees what an idle conversation can get back, and forgets what was
// approved for the session.
func (c *conversation) putAway() {
	if !c.use.TryLock() {
		return // it is used again
	}
	defer c.use.Unlock()
	if c.closed || c.away {
		return
	}
	c.box.Forget()
	if !c.readable() {
		c.rest()
		return
	}
	c.closeServers()
	c.servers = noServers()
	c.history, c.away = nil, true
	c.engine.log.Debug("an idle conversation was put away", "conversation", c.id)
}

// readable reports whether the rollout has all that the conversation remembers.
func (c *conversation) readable() bool {
	release, err := c.engine.claim(c.file.Path())
	if err != nil {
		return false
	}
	defer release()
	c.gone = false
	err = c.check()
	if errors.Is(err, rollout.ErrGone) {
		c.later(c.kept(err)) // writes it again
		err = c.check()
	}
	if errors.Is(err, rollout.ErrChanged) {
		err = nil // it has more than all
	}
	c.later(c.kept(err))
	return err == nil && c.file.Whole()
}

// wake makes the history that of the rollout, when the conversation was put away or
// another program has continued it.
func (c *conversation) wake() error {
	for _, news := range c.news {
		c.host.Emit(protocol.BackgroundEvent{Message: news})
	}
	c.news, c.gone = nil, false
	err := c.check()
	var news string
	switch {
	case errors.Is(err, rollout.ErrChanged):
		news = "another program has written to this conversation's file; the conversation continues from there"
	case c.away && errors.Is(err, rollout.ErrGone):
		news = "this conversation's file was cut; the conversation continues from what is left"
	case !c.away:
		c.keep(err)
		return nil
	}
	old, err := c.reload()
	switch {
	case err != nil && c.away:
		return fmt.Errorf("the conversation was put away when it was not used, and its file cannot be read: %w", err)
	case err != nil:
		return fmt.Errorf("another program has written to the conversation's file, and it cannot be read: %w", err)
	}
	c.keep(nil)
	if c.away {
		c.startServers()
		c.away = false
	}
	if news != "" {
		c.box.Forget()
		c.usage = old.Usage
		c.host.Emit(protocol.BackgroundEvent{Message: news})
		c.catchUp(old)
	}
	return nil
}

// reload reads the history from the rollout.
func (c *conversation) reload() (*rollout.Rollout, error) {
	path := c.file.Path()
	file, err := rollout.Open(path)
	if err != nil {
		return nil, err
	}
	old, err := load(path)
	if err != nil {
		return nil, err
	}
	if old.Meta.ID != c.id {
		return nil, fmt.Errorf("%s is of another conversation", path)
	}
	c.file = file
	c.remember(old)
	return old, nil
}
