package gobuild_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/gobuild"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestProgram runs a program that it has built, and gets the words of the go command about one that there is not.
func TestProgram(t *testing.T) {
	testenv.NeedsPrograms(t, "go")
	bin := filepath.Join(t.TempDir(), "skips.exe") // a name that every system runs
	must.OK(t, gobuild.Program(bin, "../skips"))
	cmd := exec.Command(bin)
	cmd.Stdin = strings.NewReader("no JSON\n")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "skips: ") {
		t.Errorf("%v, %q", err, out)
	}
	must.Fail(t, "no program", "nowhere", gobuild.Program(bin, "../nowhere"))
}
