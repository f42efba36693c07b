//go:build realcodex

package appserver_test

import (
	"flag"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/gobuild"
	"github.com/codexmcp/codexmcp/internal/nightly"
)

var moments = flag.Int("moments", nightly.Number(1, 50), "end the server at this `number` of moments, in each way; the step soak has more")

// TestRealNothingOutlivesADeadServer ends codex-mcp while the real Codex starts, and while it runs a command.
func TestRealNothingOutlivesADeadServer(t *testing.T) {
	server := realServer(t)
	servertest.AtAnyMoment(t, *moments, func(t *testing.T) *exec.Cmd { return server(t, true) })
}

// TestRealReaderLeaves closes the reading ends of the output of codex-mcp with the real Codex.
func TestRealReaderLeaves(t *testing.T) {
	servertest.ReaderLeaves(t, *moments, realServer(t))
}

// realServer returns commands that start codex-mcp with the real Codex, whose turns answer unless they are to be busy.
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
	t.Setenv("HOME", userHome) // the go command has what it compiled there
	bin := build(t)
	return func(t *testing.T, busy bool, args ...string) *exec.Cmd {
		home := openHome(t)
		writeFile(t, filepath.Join(home, "config.toml"), servertest.CodexConfig(models[busy].BaseURL(), ""))
		cmd := exec.Command(bin, append(args, "--engine", "codex", "--codex", codex)...)
		cmd.Env = []string{"CODEX_HOME=" + home}
		return cmd
	}
}

// openHome returns a home of Codex whose server takes calls that ask for full access.
func openHome(t *testing.T) string {
	home := t.TempDir()
	writeFile(t, filepath.Join(home, "codex-mcp.toml"), "[calls]\nfull_access = \"allow\"\n")
	return home
}

// built is codex-mcp.
var built = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(programs, "codex-mcp")
	return bin, gobuild.Program(bin, "../cmd/codex-mcp")
})

// build builds codex-mcp, once for all tests.
func build(t *testing.T) string {
	t.Helper()
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}
