package native

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/threadfile"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// saved is the rollout of a conversation.
type saved struct {
	file    *rollout.Writer
	meta    protocol.SessionMeta // the rollout's first line
	missing error                // why the rollout lacks lines, as the user was told; nil if it is whole
}

// choice returns what the conversation has after its calls have chosen.
func (c *conversation) choice(chosen protocol.Choices) *threadfile.Thread {
	return &threadfile.Thread{ID: c.ID(),
		Kept: protocol.Kept{Policy: c.now.ApprovalPolicy, Sandbox: c.now.SandboxPolicy, Choices: chosen}}
}

// checkWrite handles the result of a write to the rollout. The user is informed of an error
// once. Until the lines are written, [saved.kept] fails.
func (c *conversation) checkWrite(err error) {
	if (err == nil) == (c.saved.missing == nil) {
		return
	}
	log := c.engine.options.Logger.With("conversation", c.ID(), "rollout", c.saved.file.Path())
	if c.saved.missing = err; err == nil {
		log.Info("the conversation's file is complete again")
		c.tell("the conversation's file is complete again")
		return
	}
	log.Error("the conversation cannot be written to its file", "error", err)
	c.tell(fmt.Sprintf("the conversation cannot be written to its file; the missing lines are written as soon as "+
		"that works: %v", err))
}

// kept returns an error while the rollout lacks lines that were recorded, such as on a full
// disk, or when it was removed. Nothing may run then: what it does would be in no file, and the next server would not
// know that it ran.
func (s *saved) kept() error {
	if s.missing == nil {
		return nil
	}
	return fmt.Errorf("the conversation cannot be written to its file, so nothing more was run: %w", s.missing)
}
