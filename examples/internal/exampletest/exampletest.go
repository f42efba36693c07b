// Package exampletest is for the tests of the programs in examples: a repository to work in, clients, and
// a server with a scripted model.
package exampletest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// Repository makes a git repository whose branch main has a.txt with the line "one", and has the test forget the user's environment.
func Repository(t *testing.T) string {
	t.Helper()
	testenv.Forget()
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	Git(t, dir, "init", "-q", "-b", "main")
	Write(t, dir, "a.txt", "one\n")
	Git(t, dir, "add", "-A")
	Git(t, dir, "commit", "-qm", "begin")
	return dir
}

// Git runs git in a folder, and returns what it prints.
func Git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	testenv.NeedsPrograms(t, "git")
	args = append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)
	out, err := exec.Command("git", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// Write writes a file of a folder.
func Write(t *testing.T, dir, name, text string) {
	t.Helper()
	must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

// Connect connects to a server in this process whose model says the turns. TestMain must begin with [native.Main].
func Connect(t *testing.T, turns ...providertest.Turn) *client.Client {
	t.Helper()
	model, home := providertest.New(turns...), t.TempDir()
	t.Cleanup(model.Close)
	Write(t, home, "config.toml", fmt.Sprintf("model = \"m\"\nmodel_provider = \"p\"\n[model_providers.p]\nbase_url "+
		"= %q\nwire_api = \"chat\"\n", model.BaseURL()))
	engine := must.Get(native.New(&native.Options{CodexHome: home}))(t)
	t.Cleanup(func() { engine.Close() })
	return Start(t, &client.Options{Server: codexserver.New(engine, &codexserver.Options{Home: home})})
}

// Start starts a client and closes it when the test ends.
func Start(t *testing.T, o *client.Options) *client.Client {
	t.Helper()
	c := must.Get(client.Start(t.Context(), o))(t)
	t.Cleanup(func() { must.Check(t, c.Close()) })
	return c
}

// Peer serves a client with a handshake that answers questions, if it is able to. The end of the test ends both.
func Peer(
	t *testing.T, serve func(context.Context, jsonrpc.Transport) error, able bool,
	answer func(question string) (mcptypes.ElicitResultAction, error),
) *jsonrpc.Peer {
	t.Helper()
	ours, theirs := jsonrpc.Pipe()
	served := make(chan error, 1)
	go func() { served <- serve(context.Background(), theirs) }()
	mux := new(jsonrpc.Mux)
	mcptypes.ElicitationCreate.Handle(mux,
		func(_ context.Context, p *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error) {
			action, err := answer(p.Message)
			return &mcptypes.ElicitResult{Action: action}, err
		})
	peer := jsonrpc.NewPeer(ours, mux, nil)
	go func() { _ = peer.Run(context.Background()) }()
	t.Cleanup(func() {
		_ = peer.Close()
		<-peer.Done()
		must.Check(t, <-served)
	})
	hello := &mcptypes.InitializeRequestParams{ProtocolVersion: mcptypes.ProtocolVersion,
		ClientInfo: mcptypes.Implementation{Name: "t", Version: "1"}}
	if able {
		hello.Capabilities.Elicitation = map[string]json.RawMessage{}
	}
	must.Get(mcptypes.Initialize.Call(t.Context(), peer, hello))(t)
	return peer
}
