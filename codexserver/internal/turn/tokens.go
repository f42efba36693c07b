package turn

import (
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// tokens computes the tokens of the turn. Engines report the thread's total, and repeat it
// when only the account's limits have changed.
type tokens struct {
	given       *protocol.TokenUsage // the thread's last count when the turn began, or nil
	before, now *protocol.TokenUsage // of the thread; nil while not known
	answered    bool                 // the model has answered in this turn
}

// begin sets the count before the turn: the thread's last one, or zero if the thread is
// new.
func (t *tokens) begin(past protocol.SessionConfigured, last *protocol.TokenUsage) {
	t.given = last
	if t.before = last; last != nil {
		return
	}
	if len(past.InitialMessages) == 0 { // a new thread
		t.before = &protocol.TokenUsage{}
		return
	}
	for _, raw := range slices.Backward(past.InitialMessages) {
		m, err := protocol.ParseEvent(raw)
		if count, ok := m.(protocol.TokenCount); ok && err == nil && count.Info != nil {
			t.before = &count.Info.TotalTokenUsage
			return
		}
	}
}

func (t *tokens) count(m protocol.TokenCount) {
	switch {
	case m.Info == nil:
		return
	case t.before == nil && t.answered:
		t.before = new(minus(m.Info.TotalTokenUsage, m.Info.LastTokenUsage))
	case t.before == nil: // the count of the earlier turns
		t.before = &m.Info.TotalTokenUsage
	}
	t.now = &m.Info.TotalTokenUsage
}

// used returns how many tokens the turn has used, or 0 if that is not known.
func (t *tokens) used() int64 {
	if t.now == nil {
		return 0
	}
	u := minus(*t.now, *t.before)
	return max(u.InputTokens+u.OutputTokens, u.TotalTokens, 0) // some providers send only the total
}

// shown returns the usage for the result.
func (t *tokens) shown() *protocol.TurnUsage {
	if t.now == nil {
		return nil
	}
	of := func(u protocol.TokenUsage) protocol.Tokens {
		return protocol.Tokens{
			Input: u.InputTokens, Cached: u.CachedInputTokens,
			Output: u.OutputTokens, Reasoning: u.ReasoningOutputTokens,
		}
	}
	return &protocol.TurnUsage{Turn: of(minus(*t.now, *t.before)), Thread: of(*t.now)}
}

func minus(a, b protocol.TokenUsage) protocol.TokenUsage {
	return protocol.TokenUsage{
		InputTokens:           max(0, a.InputTokens-b.InputTokens),
		CachedInputTokens:     max(0, a.CachedInputTokens-b.CachedInputTokens),
		OutputTokens:          max(0, a.OutputTokens-b.OutputTokens),
		ReasoningOutputTokens: max(0, a.ReasoningOutputTokens-b.ReasoningOutputTokens),
		TotalTokens:           max(0, a.TotalTokens-b.TotalTokens),
	}
}
