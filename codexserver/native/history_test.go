package native_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

func rawConfig(key, value string) map[string]json.RawMessage {
	return map[string]json.RawMessage{key: json.RawMessage(value)}
}

// validRequests fails the test if a provider would refuse a request: each call must have
// one answer, directly after its response, and each answer must have a call.
func validRequests(t testing.TB, p *providertest.Server) {
	t.Helper()
	for n, r := range p.Requests() {
		if err := validHistory(r.Body); err != nil {
			t.Errorf("request %d: %v\n%s", n, err, r.Body)
		}
	}
}

func validHistory(body []byte) error {
	var req struct {
		Messages []struct {
			Role       string
			ToolCalls  []struct{ ID string } `json:"tool_calls"`
			ToolCallID string                `json:"tool_call_id"`
		}
		Input []struct {
			Type   string
			CallID string `json:"call_id"`
		}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return err
	}
	open := map[string]bool{}
	for i, m := range req.Messages {
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return fmt.Errorf("message %d answers %q, which is not open", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("message %d comes before the answers to %v", i, open)
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
	}
	for i, item := range req.Input {
		switch item.Type {
		case "function_call", "custom_tool_call", "local_shell_call":
			open[item.CallID] = true
		case "function_call_output", "custom_tool_call_output":
			if !open[item.CallID] {
				return fmt.Errorf("item %d answers %q, which is not open", i, item.CallID)
			}
			delete(open, item.CallID)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("no answers to %v", open)
	}
	return nil
}
