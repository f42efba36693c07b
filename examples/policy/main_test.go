package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

func TestMain(m *testing.M) {
	native.Main() // does not return if the engine started this process to run commands
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
	ours, theirs := jsonrpc.Pipe()
	served := make(chan error, 1)
	go func() {
		o := &codexserver.Options{Folder: p.folder, Rules: approval.Rules{Decide: p.decide}}
		served <- codexserver.New(engine, o).Serve(context.Background(), theirs)
	}()

	var asked []string
	mux := &jsonrpc.Mux{}
	mcptypes.ElicitationCreate.Handle(mux, func(_ context.Context, p *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error) {
		asked = append(asked, p.Message)
		return &mcptypes.ElicitResult{Action: mcptypes.ElicitResultActionAccept}, nil
	})
	client := jsonrpc.NewPeer(ours, mux, nil)
	go func() { _ = client.Run(context.Background()) }()
	must.Get(mcptypes.Initialize.Call(t.Context(), client, &mcptypes.InitializeRequestParams{
		ProtocolVersion: mcptypes.ProtocolVersion, ClientInfo: mcptypes.Implementation{Name: "t", Version: "1"},
		Capabilities: mcptypes.ClientCapabilities{Elicitation: map[string]json.RawMessage{}},
	}))(t)
	arguments := must.Get(json.Marshal(map[string]string{"prompt": "try", "cwd": p.folder}))(t)
	must.Get(mcptypes.ToolsCall.Call(t.Context(), client, &mcptypes.CallToolRequestParams{Name: "codex", Arguments: arguments}))(t)
	_ = client.Close()
	<-client.Done()
	if err := <-served; err != nil {
		t.Error("served:", err)
	}

	must.Equal(t, "the user was asked", []string{"Allow Codex to run `touch made` in `" + p.folder + "`?\nIf approved, it runs outside the sandbox, once: files and network are open."}, asked)
	for i, want := range []string{"", "there is no network here", "do not change anything outside", "nosuch", ""} {
		if i >= len(told) || !strings.Contains(told[i], want) {
			t.Fatalf("the model got %q, want %[3]q in number %[2]d", told, i, want)
		}
	}
	if _, err := os.Stat(filepath.Join(p.folder, "made")); err != nil {
		t.Error(err)
	}
}

func newPolicy(t *testing.T) policy {
	t.Helper()
	folder := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	return policy{folder}
}
