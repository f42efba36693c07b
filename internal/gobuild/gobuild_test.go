package gobuild_test

import (
	"bytes"
	"os"
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

	testenv.NeedsLinks(t)
	link, again := filepath.Join(t.TempDir(), "link"), filepath.Join(t.TempDir(), "skips.exe")
	must.OK(t, os.Symlink(must.Get(filepath.Abs(".."))(t), link))
	t.Chdir(filepath.Join(link, "gobuild"))
	must.OK(t, gobuild.Program(again, "../skips"))
	if !bytes.Equal(must.Get(os.ReadFile(bin))(t), must.Get(os.ReadFile(again))(t)) {
		t.Error("the program is another one in a folder that has another name by a link")
	}
}
