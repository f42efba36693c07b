package repo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
)

// TestRunWithoutSandbox checks that git reads the user's configuration only in a sandbox.
func TestRunWithoutSandbox(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = somebody\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"} {
		t.Setenv(name, "") // restores it
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	p, err := Scratch{Programs: &sandbox.Programs{Temporary: []string{}}}.find(os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	c := call{dir: home, gitDir: os.DevNull, tree: home}
	if _, err := p.confine(); err == nil {
		if out, err := p.run(t.Context(), c, "config", "--list"); err != nil || !strings.Contains(out, "user.name=somebody") {
			t.Errorf("in a sandbox: %q, %v", out, err)
		}
	}
	p.confine = func(...string) (*sandbox.Confinement, error) { return nil, sandbox.ErrUnavailable }
	if out, err := p.run(t.Context(), c, "config", "--list"); err != nil || strings.Contains(out, "somebody") {
		t.Errorf("without a sandbox: %q, %v", out, err)
	}
}

// TestRunBounds checks that a long output is cut off if requested, and else an error.
func TestRunBounds(t *testing.T) {
	dir := t.TempDir()
	p, err := Scratch{Dir: dir}.find(os.Environ(), dir)
	if err != nil {
		t.Fatal(err)
	}
	long := "[a]\n\tb = " + strings.Repeat("x", 100_000) + "\n"
	c := call{dir: dir, stdin: long}
	if out, err := p.run(t.Context(), c, "config", "--file=-", "--list"); err != nil || len(out) != 100_005 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	c.cut = 1000
	if out, err := p.run(t.Context(), c, "config", "--file=-", "--list"); err != nil || out != "a.b="+strings.Repeat("x", 996) {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	c.cut = 0
	c.stdin = strings.Repeat(long, 700)
	if out, err := p.run(t.Context(), c, "config", "--file=-", "--list"); err == nil || !strings.Contains(err.Error(), "prints more than 64 MiB") {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}
