//go:build realcodex

package review_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// newRealCodex returns an engine that drives the real Codex that CODEX_BIN names, with a scripted provider on loopback.
func newRealCodex(t *testing.T, model *providertest.Server, configuration string) *appserver.Engine {
	t.Helper()
	t.Cleanup(model.Close)
	home := servertest.CodexHome(t, model.BaseURL(), configuration)
	e := must.Get(appserver.New(&appserver.Options{CodexHome: home}))(t)
	t.Cleanup(func() { e.Close() })
	return e
}

func execTurn(id, cmd string, escalated bool) providertest.Turn {
	arguments := map[string]any{"cmd": cmd}
	if escalated {
		arguments["sandbox_permissions"], arguments["justification"] = "require_escalated", "please"
	}
	return providertest.Call(providertest.Tool(id, "exec_command", arguments))
}

// TestReal reviews all targets with the real Codex, whose model tries to write: by day in one era.
func TestReal(t *testing.T) {
	for _, era := range eras[:nightly.Number(1, len(eras))] {
		t.Run(string(era), func(t *testing.T) {
			s := newShop(t)
			var script []providertest.Turn
			for range 5 {
				script = append(script,
					execTurn("1", "touch touched", false), execTurn("2", "touch escalated", true), execTurn("3", "apply_patch <<'EOF'\n"+addPatch+"\nEOF\n", false),
					providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
						for _, o := range r.ToolOutputs() {
							t.Logf("%.300v", o)
						}
						return providertest.Say(s.answer())
					}})
			}
			model := providertest.New(script...)
			e := newRealCodex(t, model, `
approval_policy = "on-request"
sandbox_mode = "danger-full-access"
web_search = "live"
[mcp_servers.evil]
command = "touch"
args = ["`+filepath.Join(t.TempDir(), "started")+`"]
`)
			checkTargets(t, s, connect(t, e, era))
			for i, r := range model.Requests() {
				if !strings.Contains(string(r.Body), `<changes>\ndiff --git `) || i < 4 && !strings.Contains(string(r.Body), `+++ b/new.go`) {
					t.Errorf("request %d does not show the changes: %.3000s", i, r.Body)
				}
				for _, name := range []string{"web_search", "apply_patch", "evil"} {
					if strings.Contains(toolsOf(t, r), name) {
						t.Errorf("the reviewer is offered %s: %s", name, toolsOf(t, r))
					}
				}
			}
		})
	}
}
