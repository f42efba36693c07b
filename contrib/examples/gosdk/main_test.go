package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestOfficialClient runs the example against the real program and a scripted
// model, with the SDK's default settings.
func TestOfficialClient(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "codex-mcp.exe")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", bin, "./codexserver/cmd/codex-mcp")
	build.Dir = filepath.Join("..", "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const tools = "MCP 2026-07-28\ntool codex\ntool codex-reply\ntool codex-wait\ntool codex-show\ntool codex-review\ntool codex-list\ntool codex-interrupt\ntool codex-models\n"
	gitInit := providertest.Call(providertest.Shell("call-1", "git", "init", "-q"))
	for _, tt := range []struct {
		answer string
		made   bool
		want   string
	}{
		{"accept", true, tools + "? Allow codex-mcp to run `git init -q` in `CWD`? accept\n> begin\nfirst\n> go on\nsecond\n"},
		{"decline", false, tools + "? Allow codex-mcp to run `git init -q` in `CWD`? decline\n> begin\nfirst\n> go on\nsecond\n"},
	} {
		t.Run(tt.answer, func(t *testing.T) {
			model := providertest.New(gitInit, providertest.Say("first"), providertest.Say("second"))
			defer model.Close()
			cwd, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			home := t.TempDir()
			cmd := exec.Command(bin,
				"-c", "model=mock", "-c", "model_provider=mock", "-c", "approval_policy=untrusted",
				"--engine", "native", "-c", "sandbox_mode=danger-full-access",
				"-c", "model_providers.mock.name=mock", "-c", "model_providers.mock.wire_api=chat",
				"-c", "model_providers.mock.base_url="+model.BaseURL())
			cmd.Dir = cwd
			cmd.Env = append(os.Environ(), "CODEX_HOME="+home)
			var out bytes.Buffer
			if err := run(ctx, &mcp.CommandTransport{Command: cmd}, tt.answer, []string{"begin", "go on"}, &out); err != nil {
				t.Fatalf("%v\n%s", err, out.Bytes())
			}
			got := string(bytes.ReplaceAll(out.Bytes(), []byte(cwd), []byte("CWD")))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, err := os.Stat(filepath.Join(cwd, ".git")); (err == nil) != tt.made {
				t.Errorf(".git: %v", err)
			}
		})
	}
}
