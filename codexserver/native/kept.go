package native

import (
	"errors"
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// keep checks the result of a write to the rollout. If it failed, the conversation
// continues, and the user is informed once.
func (c *conversation) keep(err error) {
	if news := c.kept(err); news != "" {
		c.host.Emit(protocol.BackgroundEvent{Message: news})
	}
}

// kept returns the news for the user about a write to the rollout, "" for none. A rollout
// that is gone is written again.
func (c *conversation) kept(err error) (news string) {
	log := c.engine.log.With("conversation", c.id, "rollout", c.file.Path())
	if errors.Is(err, rollout.ErrGone) && c.follow() {
		err = c.file.Flush()
	}
	var line *rollout.LineError
	if errors.As(err, &line) {
		log.Error("a line of the conversation is lost", "error", err)
		return fmt.Sprintf("a part of the conversation is missing in its file: %v", err)
	}
	if errors.Is(err, rollout.ErrGone) && !c.gone {
		why := err
		if err = c.rewrite(); err == nil {
			c.missing = false
			log.Warn("the conversation's file is written again", "reason", why)
			return fmt.Sprintf("%s was removed or cut, and is written again", c.file.Path())
		}
		c.gone = true // tried again by the next turn, not for each line
	}
	switch {
	case err == nil && c.missing:
		c.missing = false
		log.Info("the conversation's file is complete again")
		return "the conversation's file is complete again"
	case err != nil && !c.missing:
		c.missing = true
		log.Error("the conversation cannot be written to its file", "error", err)
		return fmt.Sprintf("the conversation cannot be written to its file, what is missing will be written when it can: %v", err)
	}
	return ""
}

// follow continues in the archive when the rollout was moved there.
func (c *conversation) follow() bool {
	return c.file.Follow(rollout.ArchivedPath(c.engine.home, c.file.Path()))
}

// check looks at the rollout, wherever it is.
func (c *conversation) check() error {
	err := c.file.Check()
	if errors.Is(err, rollout.ErrGone) && c.follow() {
		err = c.file.Check()
	}
	return err
}

// rewrite writes the rollout again, from what the conversation remembers.
func (c *conversation) rewrite() error {
	return c.file.Replace(c.meta, func(w *rollout.Writer) {
		for _, item := range c.history {
			c.keepLine(w.Item(item))
			if m := said(item); m != nil {
				c.keepLine(w.Event(m))
			}
		}
		if c.usage != nil {
			c.keepLine(w.Event(protocol.TokenCount{Info: c.usage, RateLimits: c.limits}))
		}
		c.keepLine(w.TurnContext(c.now))
	})
}

// keepLine checks the write of a line of a rollout that is being written again.
func (c *conversation) keepLine(err error) {
	if err != nil {
		c.engine.log.Error("a line of the conversation is lost", "conversation", c.id, "error", err)
	}
}

// said is the event that shows a message of the history to clients, nil for
// other items and for messages of the engine's own.
func said(item protocol.ResponseItem) protocol.EventMsg {
	m, ok := item.(protocol.MessageItem)
	if !ok {
		return nil
	}
	text := contentText(m)
	switch {
	case text == "":
	case m.Role == "assistant":
		return protocol.AgentMessage{Message: text}
	case m.Role == "user" && !ownMessage(text) && !strings.HasPrefix(text, bridgeHead):
		return protocol.UserMessage{Message: text, Kind: protocol.UserPlain}
	}
	return nil
}
