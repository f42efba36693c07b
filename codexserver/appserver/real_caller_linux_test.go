//go:build realcodex

package appserver_test

import (
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/nightly"
)

// TestRealHostileCaller plays the table of hostile calls with the real Codex, which takes long for each of their commands.
// The native engine's test plays more of it: what a client can do is the same for both.
func TestRealHostileCaller(t *testing.T) {
	boxtest.Need(t)
	t.Setenv("HOME", userHome) // folders outside of the sandbox lie there, and not below one for temporary files
	hostileEngine.TestHostileCalls(t, nightly.Number(12, 1))
}

// TestRealAskedCaller approves what calls ask for.
func TestRealAskedCaller(t *testing.T) {
	boxtest.Need(t)
	t.Setenv("HOME", userHome) // folders outside of the sandbox lie there, and not below one for temporary files
	hostileEngine.TestAskedCalls(t, nightly.Number(2, 1))
}

// hostileEngine is the real Codex for hostile callers.
var hostileEngine = servertest.HostileEngine{Kind: servertest.Codex, Open: openReal, Model: realModel}

// realModel is a model with the tools of the real Codex.
func realModel(t testing.TB, next func([]byte) servertest.Step) string {
	p := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		step := next(r.Body)
		call := map[string]any{"cmd": step.Line, "yield_time_ms": 20000}
		switch {
		case step.ID == "":
			return providertest.Say("done")
		case step.Patch != "":
			call["cmd"] = "apply_patch <<'EOF'\n" + step.Patch + "EOF\n"
		case step.Outside:
			call["sandbox_permissions"], call["justification"] = "require_escalated", "to write"
		}
		return providertest.Call(providertest.Tool(step.ID, "exec_command", call))
	}})
	t.Cleanup(p.Close)
	return p.BaseURL()
}

// openReal opens the real Codex on a yard.
func openReal(t *testing.T, y *servertest.Yard) func(time.Duration, setting.FullAccess) servertest.Server {
	t.Helper()
	e, err := appserver.New(&appserver.Options{CodexHome: y.Codex})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return func(limit time.Duration, access setting.FullAccess) servertest.Server {
		return codexserver.New(e, &codexserver.Options{
			Folder: y.Start, Home: y.Codex, Tasks: codexserver.TaskOptions{Never: true}, Approvals: elicit.Options{Timeout: limit},
			Calls: codexserver.CallOptions{FullAccess: access},
		})
	}
}
