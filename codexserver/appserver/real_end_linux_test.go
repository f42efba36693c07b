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
	server := realServer(t)
	servertest.AtAnyMoment(t, *moments, func(t *testing.T) *exec.Cmd { return server(t, true) })
}

// TestRealReaderLeaves is TestEndToEndReaderLeaves with the real Codex.
func TestRealReaderLeaves(t *testing.T) { servertest.ReaderLeaves(t, *moments, realServer(t)) }

// realServer is server with the real Codex.
func realServer(t *testing.T) func(t *testing.T, busy bool, args ...string) *exec.Cmd {
	codex, err := appserver.Find("")
	if err != nil {
		t.Fatal(err)
	}
	works := providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": servertest.Daemons, "yield_time_ms": 25000}))
	answers := providertest.Say("Done.")
	works.Repeat, answers.Repeat = true, true
	models := map[bool]*providertest.Server{true: providertest.New(works), false: providertest.New(answers)}
	t.Cleanup(models[true].Close)
	t.Cleanup(models[false].Close)
	bin := build(t)
	return func(t *testing.T, busy bool, args ...string) *exec.Cmd {
		home := openHome(t)
		writeFile(t, filepath.Join(home, "config.toml"), servertest.CodexConfig(models[busy].BaseURL(), ""))
		cmd := exec.Command(bin, append(args, "--engine", "codex", "--codex", codex)...)
		cmd.Env = []string{"CODEX_HOME=" + home}
		return cmd
	}
}
