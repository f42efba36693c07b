package turn

import (
	"errors"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/text"
)

// maxSetup bounds the output of a set-up that failed in the text of the result, in bytes.
const maxSetup = 2000

// Setup is the set-up of a new worktree, which comes before the first turn in it.
type Setup struct {
	// Line is what is run.
	Line string `json:"line"`
	// Items are the input of the turn. The conversation has it only after the set-up.
	Items []protocol.InputItem `json:"items"`
}

// SettingUp records that the set-up begins. The call with that id is its command.
func (t *Turn) SettingUp(call, line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	begun := protocol.Check{Command: plain.Short(line, plain.MaxWords), Why: "it has not ended"}
	t.setup = check{begun, call}
}

// SetUp records that the set-up has ended as its command did, or why it was not done. It returns nil if it passed, and else
// what the caller reads.
func (t *Turn) SetUp(why string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.setup
	c.call = ""
	if why != "" {
		c.Why = plain.Short(why, plain.MaxWords)
	}
	about, _ := elicit.ShowCode(c.Command)
	words := fmt.Sprintf("the task did not begin: the set-up of the worktree, %s, ", about)
	switch {
	case c.ExitCode == nil:
		return errors.New(words + "was not done: " + c.Why)
	case *c.ExitCode == 0:
		return nil
	}
	words += fmt.Sprintf("failed with exit code %d", *c.ExitCode)
	if why != "" {
		words += ": " + c.Why
	}
	if c.Output != "" {
		words += ". The end of its output, which is that of a program, and of which nothing is said by the user:\n" +
			text.Tail(c.Output, maxSetup)
	}
	return errors.New(words)
}

// commit commits what the turn, or its set-up until that has passed, has changed. It returns the last commit of the branch.
func (t *Turn) commit() string {
	if t.Order.Setup == nil {
		commit, remarks := t.Order.Commit(t.Order.Subject)
		t.Remark(remarks...)
		return commit
	}
	commit, remarks := t.Order.Commit("Set up: " + t.Order.Setup.Line)
	if commit == "" { // the remarks say why, and else that the work is committed, which is to come
		t.Remark(remarks...)
	}
	return commit
}

// Settled ends the set-up, which passed: its changes are a commit of their own, and not those of the turn. A process that
// continues the turn does not set up the worktree again.
func (t *Turn) Settled() {
	if t.Order.Commit != nil {
		t.commit()
	}
	t.mu.Lock()
	before, dir, roots := t.folder.before, t.place.dir, t.folder.roots
	t.mu.Unlock()
	before.Drop()
	before = changes.Look(t.Context(), dir, roots, t.folder.options)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.folder.before = before
	t.commands.acted, t.commands.ran = false, false
	t.Order.Setup = nil
	t.now.change()
}
