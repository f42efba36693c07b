//go:build realcodex

package tools_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestRealForwarding drives the real Codex that CODEX_BIN names, with a scripted provider
// on loopback.
func TestRealForwarding(t *testing.T) {
	engineForwarding(t, func(t *testing.T, model *providertest.Server) engine.Engine {
		e, err := appserver.New(&appserver.Options{CodexHome: servertest.CodexHome(t, model.BaseURL(), asksAlways)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		return e
	}, func(id, script string) providertest.ToolCall {
		return providertest.Tool(id, "exec_command", map[string]any{"cmd": script})
	})
}
