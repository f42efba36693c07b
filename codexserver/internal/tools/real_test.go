//go:build realcodex

package tools_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// newCodex returns the real Codex that CODEX_BIN names, with a scripted provider on loopback.
func newCodex(t *testing.T, model *providertest.Server, configuration string) engine.Engine {
	t.Helper()
	e, err := appserver.New(&appserver.Options{CodexHome: servertest.CodexHome(t, model.BaseURL(), configuration)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func TestRealBudget(t *testing.T) {
	model := providertest.New(budgetScript(runByCodex)...)
	t.Cleanup(model.Close)
	e := newCodex(t, model, "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"")
	engineBudget(t, e, func() int { return len(model.Requests()) }, 3)
}

func runByCodex(id, script string) providertest.ToolCall {
	return providertest.Tool(id, "exec_command", map[string]any{"cmd": script})
}
