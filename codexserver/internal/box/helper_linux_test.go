//go:build bubblewrap

package box_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestTerminalsAndSemaphores has commands that need a pseudo-terminal or a semaphore: without namespaces the server's own
// sandbox gives none, and the helper of docs/configuration.md with bubblewrap gives each command its own.
func TestTerminalsAndSemaphores(t *testing.T) {
	helper := filepath.Join(tree(t, "codex-bwrap="+documentedHelper(t)), "codex-bwrap")
	for _, name := range []string{"bwrap", "jq", "script", "python3"} {
		must.Get(exec.LookPath(name))(t)
	}
	if out, err := exec.CommandContext(t.Context(), "bwrap", "--ro-bind", "/", "/", "--unshare-user", "--unshare-net", "true").CombinedOutput(); err != nil {
		t.Fatalf("bubblewrap cannot run here: %v: %s", err, out)
	}
	work := tree(t)
	for _, tt := range []struct{ name, command string }{
		{"a pseudo-terminal", `python3 -c 'import pty; pty.openpty(); print("well")'`},
		{"script", `script -qc 'echo well' /dev/null | tr -d '\r'`},
		{"a semaphore", `python3 -c 'import multiprocessing as m; m.Lock(); print("well")'`},
	} {
		for name, o := range map[string]struct {
			options box.Options
			well    bool
		}{"the server's sandbox": {box.Options{}, box.RoomsAvailable() == nil}, "the helper": {box.Options{Helper: []string{helper}}, true}} {
			c := must.Get(box.New(o.options).Confine(write(), work, nil))(t)
			res := ran(t, run.Spec{Argv: []string{"sh", "-c", tt.command}, Dir: work, Env: os.Environ(), Confinement: c})
			if (res.Stdout == "well\n") != o.well {
				t.Errorf("%s in %s: %s", tt.name, name, res.Aggregated)
			}
		}
	}
}
