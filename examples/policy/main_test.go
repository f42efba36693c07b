package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/examples/internal/exampletest"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestMain(m *testing.M) {
	native.Main() // does not return if the engine started this process to run commands
	testenv.Forget()
	os.Exit(m.Run())
}

// TestServer lets a scripted model try four commands in the policy's folder.
func TestServer(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Sandbox)
	p, told := newPolicy(t), []string(nil)
	temporary := t.TempDir() // the only writable one in the sandbox, because $CODEX_HOME is in the system's
	t.Setenv("TMPDIR", temporary)
	t.Setenv("GOCACHE", temporary)
	try := func(argv ...string) providertest.Turn {
		return providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
			told = append(told, r.LastToolOutput())
			return providertest.Call(providertest.Shell("", argv...))
		}}
	}
	model := providertest.New(
		try("git", "push"), try("touch", "/made"), try("go", "test", "-run=none", "nosuch"), try("touch", "made"),
		providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
			told = append(told, r.LastToolOutput())
			return providertest.Say("done")
		}})
	defer model.Close()
	engine := must.Get(native.New(&native.Options{CodexHome: t.TempDir(), Overrides: map[string]any{
		"model": "m", "model_provider": "p", "model_providers.p.base_url": model.BaseURL(), "model_providers.p.wire_api": "chat",
		"approval_policy": "untrusted", "sandbox_mode": "workspace-write",
	}}))(t)
	defer engine.Close()
	var asked []string
	c := exampletest.Start(t, &client.Options{
		Server: codexserver.New(engine, &codexserver.Options{Folder: p.folder, Rules: approval.Rules{Decide: p.decide}}),
		Ask: func(_ context.Context, q *client.Question) elicit.Outcome {
			asked = append(asked, q.Message)
			return elicit.Outcome{Decision: elicit.Approved}
		},
	})
	must.Get(c.Run(t.Context(), client.Task{Prompt: "try", Cwd: p.folder}))(t)
	must.Equal(t, "the user was asked", []string{"Allow codex-mcp to run `touch made` in `" + p.folder + "`?\nIf approved, it runs outside the sandbox, once: files and network are open."}, asked)
	for i, want := range []string{"", "there is no network here", "do not change anything outside", "nosuch", ""} {
		if i >= len(told) || !strings.Contains(told[i], want) {
			t.Fatalf("the model got %q, want %[3]q in number %[2]d", told, i, want)
		}
	}
	must.Get(os.Stat(filepath.Join(p.folder, "made")))(t)
}

func newPolicy(t *testing.T) policy {
	t.Helper()
	return policy{must.Get(filepath.EvalSymlinks(t.TempDir()))(t)}
}
