package repo_test

import (
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
)

// TestRunBounds checks that a long output is cut off if requested, and else an error.
func TestRunBounds(t *testing.T) {
	dir := t.TempDir()
	p, err := repo.Scratch{Dir: dir}.Find(os.Environ(), dir)
	if err != nil {
		t.Fatal(err)
	}
	long := "[a]\n\tb = " + strings.Repeat("x", 100_000) + "\n"
	c := repo.Call{Dir: dir, Stdin: long}
	if out, err := p.Run(t.Context(), c, "config", "--file=-", "--list"); err != nil || len(out) != 100_005 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	c.Cut = 1000
	if out, err := p.Run(t.Context(), c, "config", "--file=-", "--list"); err != nil || out != "a.b="+strings.Repeat("x", 996) {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	c.Cut = 0
	c.Stdin = strings.Repeat(long, 700)
	if out, err := p.Run(t.Context(), c, "config", "--file=-", "--list"); err == nil || !strings.Contains(err.Error(), "prints more than 64 MiB") {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}
