package turn_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestTokens counts the tokens of a turn from the last count before it, which the events of a
// thread that was resumed have.
func TestTokens(t *testing.T) {
	count := func(total int64) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"type":"token_count","info":{"total_token_usage":{"input_tokens":%d},"last_token_usage":{}},"rate_limits":null}`, total))
	}
	limits := json.RawMessage(`{"type":"token_count","info":null,"rate_limits":null}`)
	for name, tt := range map[string]struct {
		past []json.RawMessage
		used *protocol.TokenUsage
		want int64 // of a turn after which the thread has used 100
	}{
		"a new thread":           {nil, nil, 100},
		"a thread that goes on":  {nil, &protocol.TokenUsage{InputTokens: 30}, 70},
		"a resumed one":          {[]json.RawMessage{count(40), count(90), limits, json.RawMessage(`no JSON`)}, nil, 10},
		"one that was used here": {[]json.RawMessage{count(40)}, &protocol.TokenUsage{InputTokens: 95}, 5},
	} {
		work := turn.New(changes.Options{})
		work.Begin(t.Context(), protocol.SessionConfigured{InitialMessages: tt.past}, tt.used)
		work.Add(newLog(t), "", protocol.TokenCount{Info: &protocol.TokenUsageInfo{TotalTokenUsage: protocol.TokenUsage{InputTokens: 100}}})
		if u := work.So().Usage; u == nil || u.Turn.Input != tt.want || u.Thread.Input != 100 {
			t.Errorf("%s: %+v, want %d", name, u, tt.want)
		}
	}
}
