package native

import (
	"errors"
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// saved is the rollout of a conversation.
type saved struct {
	file    *rollout.Writer
	meta    protocol.SessionMeta // the rollout's first line
	missing error                // why the rollout lacks lines, as the user was told; nil if it is whole
	gone    bool                 // the rollout is gone and could not be written again
}

// checkWrite handles the result of a write to the rollout. The user is informed of an error
// once. Until the lines are written, [saved.kept] fails.
func (c *conversation) checkWrite(err error) {
	if news := c.writeNews(err); news != "" {
		c.host.Emit(protocol.BackgroundEvent{Message: news})
	}
}

// writeNews returns the message for the user about the result of a write to the rollout,
// "" for none. It writes a rollout that is gone again.
func (c *conversation) writeNews(err error) (news string) {
	if err == nil && c.saved.missing == nil {
		return ""
	}
	log := c.engine.options.Logger.With("conversation", c.ID(), "rollout", c.saved.file.Path())
	if errors.Is(err, rollout.ErrGone) && c.saved.follow(c.engine.options.CodexHome) {
		err = c.saved.file.Flush()
	}
	var line *rollout.LineError
	if errors.As(err, &line) {
		log.Error("a line of the conversation is lost", "error", err)
		return fmt.Sprintf("a part of the conversation could not be written to its file and is lost there: %v", err)
	}
	if errors.Is(err, rollout.ErrGone) && !c.saved.gone {
		why := err
		if err = c.rewrite(); err == nil {
			c.saved.missing = nil
			log.Warn("the conversation's file was written again", "reason", why)
			return fmt.Sprintf("%s was removed or cut; it was written again", c.saved.file.Path())
		}
		c.saved.gone = true // the next turn tries again, rather than each line
	}
	switch {
	case err == nil && c.saved.missing != nil:
		c.saved.missing = nil
		log.Info("the conversation's file is complete again")
		return "the conversation's file is complete again"
	case err != nil && c.saved.missing == nil:
		c.saved.missing = err
		log.Error("the conversation cannot be written to its file", "error", err)
		return fmt.Sprintf("the conversation cannot be written to its file; the missing lines are written as soon as that works: %v", err)
	}
	return ""
}

// kept returns an error while the rollout lacks lines that were recorded, such as on a full
// disk. Nothing may run then: what it does would be in no file, and the next server would not
// know that it ran.
func (s *saved) kept() error {
	if s.missing == nil {
		return nil
	}
	return fmt.Errorf("the conversation cannot be written to its file, so nothing more was run: %w", s.missing)
}

// follow continues in the archive of home if the rollout was moved there, and reports whether
// it was.
func (s *saved) follow(home string) bool {
	return s.file.Follow(rollout.ArchivedPath(home, s.file.Path()))
}

// check reports what has become of the rollout since the last write; see
// [rollout.Writer.Check]. It follows the rollout into the archive.
func (s *saved) check(home string) error {
	err := s.file.Check()
	if errors.Is(err, rollout.ErrGone) && s.follow(home) {
		err = s.file.Check()
	}
	return err
}

// rewrite writes the rollout again, from memory.
func (c *conversation) rewrite() error {
	return c.saved.file.Replace(c.saved.meta, func(w *rollout.Writer) {
		for _, item := range c.history.items {
			c.checkLine(w.Item(item))
			if m := said(item); m != nil {
				c.checkLine(w.Event(m))
			}
		}
		if c.meter.usage != nil {
			c.checkLine(w.Event(c.meter.report()))
		}
		c.checkLine(w.TurnContext(c.now))
	})
}

// checkLine logs an error for a line of a rollout that is being written again.
func (c *conversation) checkLine(err error) {
	if err != nil {
		c.engine.options.Logger.Error("a line of the conversation is lost", "conversation", c.ID(), "error", err)
	}
}

// said returns the event that shows a message of the history to clients. It is nil for
// other items and for messages that the engine wrote.
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
