package report

import (
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// tokens computes the tokens of the turn. Engines report the thread's total, and repeat it
// when only the account's limits have changed.
type tokens struct {
	before, now *protocol.TokenUsage // of the thread; nil while not known
	answered    bool                 // the model has answered in this turn
}

// begin sets the count before the turn: the thread's last one, or zero if the thread is
// new.
func (t *tokens) begin(past protocol.SessionConfigured, last *protocol.TokenUsage) {
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

func (t *tokens) event(m protocol.EventMsg) {
	count, ok := m.(protocol.TokenCount)
	switch {
	case !ok:
		t.answered = t.answered || answers(m)
		return
	case count.Info == nil:
		return
	case t.before == nil && t.answered:
		t.before = new(minus(count.Info.TotalTokenUsage, count.Info.LastTokenUsage))
	case t.before == nil: // the count of the earlier turns
		t.before = &count.Info.TotalTokenUsage
	}
	t.now = &count.Info.TotalTokenUsage
}

// answers reports whether an event comes from a response of the model.
func answers(m protocol.EventMsg) bool {
	switch m.(type) {
	case protocol.AgentMessage, protocol.AgentMessageDelta, protocol.AgentReasoning, protocol.AgentReasoningDelta,
		protocol.ExecApprovalRequest, protocol.PatchApprovalRequest, protocol.ExecCommandBegin, protocol.PatchApplyBegin,
		protocol.PlanUpdate, protocol.MCPToolCallBegin, protocol.WebSearchBegin, protocol.ViewImageToolCall:
		return true
	}
	return false
}

func (t *tokens) usage() *Usage {
	if t.now == nil {
		return nil
	}
	return &Usage{Turn: minus(*t.now, *t.before), Thread: *t.now}
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
