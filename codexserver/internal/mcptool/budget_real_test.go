//go:build realcodex

package mcptool_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestRealBudget drives the real Codex that CODEX_BIN names, with a scripted provider
// on loopback.
func TestRealBudget(t *testing.T) {
	model := providertest.New(budgetScript(func(id, script string) providertest.ToolCall {
		return providertest.Tool(id, "exec_command", map[string]any{"cmd": script})
	})...)
	defer model.Close()
	home := t.TempDir()
	t.Setenv("HOME", t.TempDir()) // commands would run the real home's shell profile
	const configuration = `
model = "mock-model"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.mock]
name = "mock"
base_url = %q
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
`
	if err := os.WriteFile(filepath.Join(home, "config.toml"), fmt.Appendf(nil, configuration, model.BaseURL()), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := appserver.New(&appserver.Options{CodexHome: home})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	engineBudget(t, e, func() int { return len(model.Requests()) }, 3)
}
