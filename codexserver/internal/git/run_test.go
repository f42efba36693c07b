package git

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRunBounds checks that a long output is cut off if requested, and else an error.
func TestRunBounds(t *testing.T) {
	dir := t.TempDir()
	p, err := Scratch{Dir: dir}.find(dir)
	must.OK(t, err)
	long := "[a]\n\tb = " + strings.Repeat("x", 100_000) + "\n"
	confined, err := p.programs.Confine()
	if err != nil {
		t.Skip(err)
	}
	c := call{dir: dir, confined: confined, stdin: long}
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
