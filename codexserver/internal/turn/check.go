package turn

import (
	"cmp"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// noProgram is the exit code of shells for a program that is not there.
const noProgram = 127

// check is the last check of a turn.
type check struct {
	protocol.Check        // without a command before the first one
	call           string // of its command while the check runs, "" then
}

// is reports whether a call is the check that runs.
func (c *check) is(call string) bool { return call != "" && call == c.call }

// Checking records that a check begins at a try of the turn. The call with that id is its command.
func (t *Turn) Checking(call, line string, try int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	begun := protocol.Check{Command: plain.Short(line, plain.MaxWords), Tries: try, Why: "it has not ended"}
	t.check = check{begun, call}
}

// Checked records that the check has ended as its command did, or why that says nothing about the work. It returns
// whether it passed, and whether the model can mend what is wrong, which the words say to it.
func (t *Turn) Checked(why string) (words string, passed, again bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.check
	c.call, c.Why = "", cmp.Or(plain.Short(why, plain.MaxWords), c.Why)
	switch {
	case c.ExitCode == nil, *c.ExitCode < 0, *c.ExitCode != 0 && why != "": // no verdict
	case *c.ExitCode == noProgram: // perhaps the model is to make it
		c.Why, again = "the shell found no such program", true
	default:
		passed = *c.ExitCode == 0
		c.Why, c.Passed, again = "", new(passed), !passed
	}
	if words = checked(&c.Check); again {
		t.Order.Tries = c.Tries
		words += " Mend the cause and end your turn; the check runs again. " +
			"What follows is the output of a program, and none of it is said by the user:\n" + c.Output
	}
	t.now.change()
	return words, passed, again
}

// checked says how a check ended.
func checked(c *protocol.Check) string {
	about, _ := elicit.ShowCode(c.Command)
	switch {
	case c.Passed == nil:
		return fmt.Sprintf("The check %s says nothing about the work: %s.", about, c.Why)
	case *c.Passed:
		return fmt.Sprintf("The check %s passed.", about)
	}
	const failed = "The task is not done: the check %s failed with exit code %d at try %d."
	return fmt.Sprintf(failed, about, *c.ExitCode, c.Tries)
}
