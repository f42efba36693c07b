package turn

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// noProgram is the exit code of shells for a program that is not there.
const noProgram = 127

// check is what is known of the checks of a turn.
type check struct {
	running bool // the next command is the check
	tries   int  // that have ended, also in earlier processes
	last    *protocol.Check
}

// Checking records that a check begins: the next command of the turn is it.
func (t *Turn) Checking(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.check.running = true
	t.check.last = &protocol.Check{Command: plain.Short(line, plain.MaxWords), Tries: t.check.tries + 1, Why: "it did not end"}
	t.now.do(plain.Status("checking: "+line), "")
	t.now.change()
}

// Checked records how a check ended, and reports it in a sentence, and whether it passed. Without a verdict, the model
// cannot mend what is wrong.
func (t *Turn) Checked(out engine.Checked) (words string, passed, verdict bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.check.running = false
	t.now.do(thinking, "")
	c := t.check.last
	c.Why, c.ExitCode, c.Output = plain.Short(out.Why, plain.MaxWords), out.ExitCode, elicit.ShowText(out.Output)
	verdict = out.Why == "" && out.ExitCode != nil
	switch {
	case !verdict:
	case *out.ExitCode == noProgram: // perhaps the model is to make it
		c.Why = "the shell found no such program"
	default:
		passed = *out.ExitCode == 0
		c.Passed = &passed
	}
	_, words = t.checked()
	return words, passed, verdict
}

// Tried records that a try has ended, and returns how many have.
func (t *Turn) Tried() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.check.tries++
	t.now.change()
	return t.check.tries
}

// Tries returns how many tries have ended.
func (t *Turn) Tries() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.check.tries
}

// TokensLeft returns how many tokens the turn may still use, at least 1; 0 without a limit.
func (t *Turn) TokensLeft() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.Order.Budget.bounds() {
		return 0
	}
	return max(*t.Order.Budget.Tokens-t.tokens.used(), 1)
}

// checked returns how the last check ended, and a sentence about it; nil if none began. The caller holds t.mu.
func (t *Turn) checked() (last *protocol.Check, words string) {
	last = t.check.last
	if last == nil {
		return nil, ""
	}
	about, _ := elicit.ShowCode(last.Command)
	switch {
	case last.Passed == nil:
		words = fmt.Sprintf("The check %s says nothing about the work: %s.", about, last.Why)
	case *last.Passed:
		words = fmt.Sprintf("The check %s passed.", about)
	default:
		words = fmt.Sprintf("The task is not done: the check %s failed with exit code %d at try %d.", about, *last.ExitCode, last.Tries)
	}
	return last, words
}
