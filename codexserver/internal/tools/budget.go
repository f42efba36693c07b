package tools

import (
	"errors"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
)

// checkBudget reports a budget that is not valid.
func checkBudget(b *turn.Budget) error {
	switch {
	case b == nil:
		return nil
	case b.Tokens == nil && b.Minutes == nil:
		return errors.New("argument /budget: want tokens, minutes or both")
	case b.Tokens != nil && *b.Tokens < 1:
		return errors.New("argument /budget/tokens: want at least 1")
	case b.Minutes != nil && *b.Minutes <= 0:
		return errors.New("argument /budget/minutes: want more than 0")
	}
	return nil
}

// maxTokens returns how many tokens a turn may use, 0 without a limit.
func maxTokens(b *turn.Budget) int64 {
	if b == nil || b.Tokens == nil {
		return 0
	}
	return *b.Tokens
}

// spentWords returns the text of a turn that its budget stopped: the reason and the agent's last message.
func spentWords(e *turn.SpentError, last string) string {
	words := "The turn was stopped: " + e.Error() + ". What it has changed stays; codex-reply continues."
	if last = strings.TrimSpace(last); last != "" {
		words += " The last message:\n\n" + last
	}
	return words
}
