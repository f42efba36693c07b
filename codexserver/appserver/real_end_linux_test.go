//go:build realcodex

package appserver_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestRealNothingOutlivesADeadServer is TestEndToEndNothingOutlivesADeadServer
// with the real Codex.
func TestRealNothingOutlivesADeadServer(t *testing.T) {
	codex, err := appserver.Find("")
	if err != nil {
		t.Fatal(err)
	}
	busy := providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": servertest.Daemons, "yield_time_ms": 25000}))
	busy.Repeat = true
	model := providertest.New(busy)
	t.Cleanup(model.Close)
	bin := build(t)
	servertest.AtAnyMoment(t, *moments, func(t *testing.T) *exec.Cmd {
		home := openHome(t)
		writeFile(t, filepath.Join(home, "config.toml"), servertest.CodexConfig(model.BaseURL(), ""))
		cmd := exec.Command(bin, "-engine", "codex", "-codex", codex)
		cmd.Env = []string{"CODEX_HOME=" + home}
		return cmd
	})
}

// TestRealReaderLeaves is TestEndToEndReaderLeaves with the real Codex.
func TestRealReaderLeaves(t *testing.T) {
	codex, err := appserver.Find("")
	if err != nil {
		t.Fatal(err)
	}
	busy := providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": servertest.Daemons, "yield_time_ms": 25000}))
	answer := providertest.Say("Done.")
	busy.Repeat, answer.Repeat = true, true
	models := map[bool]*providertest.Server{true: providertest.New(busy), false: providertest.New(answer)}
	t.Cleanup(models[true].Close)
	t.Cleanup(models[false].Close)
	bin := build(t)
	servertest.ReaderLeaves(t, *moments, func(t *testing.T, busy bool, args ...string) *exec.Cmd {
		home := openHome(t)
		writeFile(t, filepath.Join(home, "config.toml"), servertest.CodexConfig(models[busy].BaseURL(), ""))
		cmd := exec.Command(bin, append(args, "-engine", "codex", "-codex", codex)...)
		cmd.Env = []string{"CODEX_HOME=" + home}
		return cmd
	})
}
