//go:build realcodex

package mcptool_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/setting"
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

// TestRealBudgetElsewhere has the real Codex use a part of the budget until its provider refuses, and the
// native engine the rest.
func TestRealBudgetElsewhere(t *testing.T) {
	first, second, requests := splitBudget(t,
		func(id, script string) providertest.ToolCall {
			return providertest.Tool(id, "exec_command", map[string]any{"cmd": script})
		},
		func(id, script string) providertest.ToolCall { return providertest.Shell(id, "sh", "-c", script) })
	home := servertest.CodexHome(t, first.BaseURL(), "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"")
	path := filepath.Join(home, "config.toml")
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(b, fmt.Sprintf("\n[model_providers.second]\nname = \"second\"\nbase_url = %q\nwire_api = \"responses\"\n", second.BaseURL())...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	failover := setting.Failover{To: []setting.FailoverTo{{Provider: "second", Model: "n"}}}.Resolved()
	e, err := appserver.New(&appserver.Options{CodexHome: home, Failover: failover, Next: func(reach func() []string) (engine.Resumer, error) {
		return native.New(&native.Options{CodexHome: home, Failover: failover, Reach: reach})
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	engineBudget(t, e, requests, 2)
}
