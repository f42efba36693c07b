package config_test

import (
	stdjson "encoding/json"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/google/go-cmp/cmp"
)

func TestReadTexts(t *testing.T) {
	for _, tt := range []struct{ name, key, value, want string }{
		{"number", "model_context_window", `"32000"`, `32000`},
		{"number with blanks", "model_context_window", `" 32000\n"`, `32000`},
		{"no number", "model_context_window", `"many"`, `"many"`},
		{"boolean", "hide_agent_reasoning", `"true"`, `true`},
		{"no boolean", "hide_agent_reasoning", `"1"`, `"1"`},
		{"word that a text key takes", "model", `"true"`, `"true"`},
		{"number that a text key takes", "developer_instructions", `"5"`, `"5"`},
		{"policy", "approval_policy", `"never"`, `"never"`},
		{"dotted", "sandbox_workspace_write.network_access", `"true"`, `true`},
		{"in a table", "sandbox_workspace_write", `{"network_access":"false","writable_roots":"[\"/x\"]"}`, `{"network_access":false,"writable_roots":["/x"]}`},
		{"table", "sandbox_workspace_write", `"{\"network_access\":\"true\"}"`, `{"network_access":true}`},
		{"feature", "features", `{"web_search_request":"true"}`, `{"web_search_request":true}`},
		{"dotted feature", "features.web_search_request", `"false"`, `false`},
		{"server", "mcp_servers.docs.enabled", `"false"`, `false`},
		{"unknown key", "nothing", `"5"`, `"5"`},
		{"ours", "limits.tokens", `"5"`, `"5"`},
		{"null", "hide_agent_reasoning", `"null"`, `"null"`},
		{"not JSON", "writable_roots", `"[/x]"`, `"[/x]"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			overrides := map[string]stdjson.RawMessage{tt.key: stdjson.RawMessage(tt.value)}
			config.ReadTexts(overrides)
			if diff := cmp.Diff(tt.want, string(overrides[tt.key])); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
