// Package exampletest is for the tests of the programs in examples: a repository to work in, and
// a server with a scripted model.
package exampletest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// Repository makes a git repository whose branch main has a.txt with the line "one".
func Repository(t *testing.T) string {
	t.Helper()
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	Git(t, dir, "init", "-q", "-b", "main")
	Write(t, dir, "a.txt", "one\n")
	Git(t, dir, "add", "-A")
	Git(t, dir, "commit", "-qm", "begin")
	return dir
}

// Git runs git in a folder.
func Git(t *testing.T, dir string, args ...string) {
	t.Helper()
	testenv.NeedsPrograms(t, "git")
	args = append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)
	if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// Write writes a file of a folder.
func Write(t *testing.T, dir, name, text string) {
	t.Helper()
	must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

// Connect connects to a server in this process whose model says the turns. TestMain must begin
// with [native.Main].
func Connect(t *testing.T, turns ...providertest.Turn) *client.Client {
	t.Helper()
	return Start(t, &client.Options{Server: Server(t, elicit.Options{}, turns...)})
}

// Start starts a client and closes it when the test ends.
func Start(t *testing.T, o *client.Options) *client.Client {
	t.Helper()
	c := must.Get(client.Start(t.Context(), o))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

// Server makes a server whose model says the turns and which asks as the options say. TestMain
// must begin with [native.Main].
func Server(t *testing.T, approvals elicit.Options, turns ...providertest.Turn) *codexserver.Server {
	t.Helper()
	model, home := providertest.New(turns...), t.TempDir()
	t.Cleanup(model.Close)
	Write(t, home, "config.toml", fmt.Sprintf("model = \"m\"\nmodel_provider = \"p\"\n[model_providers.p]\nbase_url = %q\nwire_api = \"chat\"\n", model.BaseURL()))
	engine := must.Get(native.New(&native.Options{CodexHome: home}))(t)
	t.Cleanup(func() { engine.Close() })
	return codexserver.New(engine, &codexserver.Options{Home: home, Approvals: approvals})
}
