package native

import "github.com/codexmcp/codexmcp/codexserver/protocol"

// meter counts what a conversation uses, and has what its provider said of limits.
type meter struct {
	compactions int
	usage       *protocol.TokenUsageInfo // nil before the first response
	limits      *protocol.RateLimits
}

// add adds the usage of a response of a model with a context window.
func (m *meter) add(u protocol.TokenUsage, window *int64) {
	info := protocol.TokenUsageInfo{LastTokenUsage: u, ModelContextWindow: window}
	if m.usage != nil {
		info.TotalTokenUsage = m.usage.TotalTokenUsage
	}
	sum := &info.TotalTokenUsage
	sum.InputTokens += u.InputTokens
	sum.CachedInputTokens += u.CachedInputTokens
	sum.OutputTokens += u.OutputTokens
	sum.ReasoningOutputTokens += u.ReasoningOutputTokens
	sum.TotalTokens += u.TotalTokens
	m.usage = &info
}

// forgetLast forgets the size of the last request, and reports whether there was one.
func (m *meter) forgetLast() bool {
	if m.usage == nil {
		return false
	}
	info := *m.usage
	info.LastTokenUsage = protocol.TokenUsage{}
	m.usage = &info
	return true
}

// last returns the tokens of the last request and its response, 0 when they are not known.
func (m *meter) last() int64 {
	if m.usage == nil {
		return 0
	}
	return m.usage.LastTokenUsage.TotalTokens
}

// report returns the event about usage and limits.
func (m *meter) report() protocol.TokenCount {
	return protocol.TokenCount{Info: m.usage, RateLimits: m.limits}
}
