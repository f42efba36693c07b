//go:build realcodex

package tools_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestRealBudget drives the real Codex that CODEX_BIN names, with a scripted provider
// on loopback.
func TestRealBudget(t *testing.T) {
	model := providertest.New(budgetScript(func(id, script string) providertest.ToolCall {
		return providertest.Tool(id, "exec_command", map[string]any{"cmd": script})
	})...)
	defer model.Close()
	home := servertest.CodexHome(t, model.BaseURL(), `approval_policy = "never"
sandbox_mode = "danger-full-access"`)
	e, err := appserver.New(&appserver.Options{CodexHome: home})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	engineBudget(t, e, func() int { return len(model.Requests()) }, 3)
}
