package appserver_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/internal/gobuild"
	"github.com/codexmcp/codexmcp/internal/nightly"
)

var moments = flag.Int("moments", nightly.Number(1, 50), "end the server at this `number` of moments, in each way; the step soak has more")

// TestEndToEndNothingOutlivesADeadServer ends codex-mcp while the app-server
// starts, and while it runs a command.
func TestEndToEndNothingOutlivesADeadServer(t *testing.T) {
	server := server(t)
	servertest.AtAnyMoment(t, *moments, func(t *testing.T) *exec.Cmd { return server(t, true) })
}

// TestEndToEndReaderLeaves closes the reading ends of codex-mcp's output.
func TestEndToEndReaderLeaves(t *testing.T) { servertest.ReaderLeaves(t, *moments, server(t)) }

// server returns commands that start codex-mcp with the test binary as Codex, whose turns answer unless they
// are to be busy.
func server(t *testing.T) func(t *testing.T, busy bool, args ...string) *exec.Cmd {
	codex, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := build(t)
	return func(t *testing.T, busy bool, args ...string) *exec.Cmd {
		kind := map[bool]string{true: "busy", false: "fine"}[busy]
		cmd := exec.Command(bin, append(args, "--engine", "codex", "--codex", codex)...)
		cmd.Env = []string{"CODEX_HOME=" + openHome(t), asCodex + "=" + kind}
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

// TestKilledLauncher kills the launcher of an app-server, which then gets another parent. The
// app-server counts as dead.
func TestKilledLauncher(t *testing.T) {
	e := program(t, "deaf", appserver.Options{})
	h := &recorder{}
	conv := start(t, e, h)
	done := begin(t.Context(), conv, text("go"))
	h.wait(t, "task_started")
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", e.PID()))
	if err != nil {
		t.Fatal(err)
	}
	_, fields, _ := bytes.Cut(stat, []byte(") ")) // behind the name
	var state string
	var launcher int
	if _, err := fmt.Sscan(string(fields), &state, &launcher); err != nil {
		t.Fatal(err)
	}
	if launcher == os.Getpid() {
		t.Fatal("the app-server has no launcher")
	}
	if err := syscall.Kill(launcher, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("the turn ended well")
	}
	if left := left(t); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// TestNewWithoutMain makes no engine in a program whose main does not call Main.
func TestNewWithoutMain(t *testing.T) {
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, asCodex+"=without Main") }, func(t *testing.T) {
		if _, err := appserver.New(nil); err == nil || !strings.Contains(err.Error(), "appserver.Main") {
			t.Errorf("error %v", err)
		}
	})
}
