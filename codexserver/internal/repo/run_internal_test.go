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
	p, err := Scratch{Programs: &sandbox.Programs{Temporary: []string{}}}.Find(os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	c := Call{Dir: home, GitDir: os.DevNull, WorkTree: home}
	if _, err := p.confine(); err == nil {
		if out, err := p.Run(t.Context(), c, "config", "--list"); err != nil || !strings.Contains(out, "user.name=somebody") {
			t.Errorf("in a sandbox: %q, %v", out, err)
		}
	}
	p.confine = func(...string) (*sandbox.Confinement, error) { return nil, sandbox.ErrUnavailable }
	if out, err := p.Run(t.Context(), c, "config", "--list"); err != nil || strings.Contains(out, "somebody") {
		t.Errorf("without a sandbox: %q, %v", out, err)
	}
}
