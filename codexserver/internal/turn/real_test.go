//go:build realcodex

package turn_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRealTurn drives the real Codex that CODEX_BIN names, with a scripted provider on loopback.
func TestRealTurn(t *testing.T) {
	run := func(id, cmd string) providertest.Turn {
		return providertest.Call(providertest.Tool(id, "exec_command", map[string]any{"cmd": cmd}))
	}
	model := providertest.New(
		run("1", "apply_patch <<'EOF'\n"+enginePatch+"\nEOF\n"),
		run("2", "rm old.go"),
		run("3", "echo FAIL > test.log; exit 3"),
		run("4", "git push origin"),
		providertest.Say("done"),
	)
	defer model.Close()
	home := servertest.CodexHome(t, model.BaseURL(), `approval_policy = "untrusted"
sandbox_mode = "danger-full-access"`)
	e := must.Get(appserver.New(&appserver.Options{CodexHome: home}))(t)
	defer e.Close()
	if r := engineTurn(t, e); r.Usage == nil || r.Usage.Turn.Input != 50 || r.Model != "mock-model" {
		t.Errorf("model %q, usage %+v", r.Model, r.Usage)
	}
}
