//go:build unix

package tool_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestFolderOfApproval replaces a command's folder with a symbolic link: before the question,
// which then shows its target; after an approval for the session, which then does not apply;
// and while the question is open.
func TestFolderOfApproval(t *testing.T) {
	for _, when := range []string{"never", "before", "during", "after"} {
		base := boxtest.Folder(t)
		work, sub, home := filepath.Join(base, "work"), filepath.Join(base, "work/sub"), filepath.Join(base, "home")
		boxtest.Lay(t, base, "work/sub/", "home/")
		replace := func() {
			if err := errors.Join(os.RemoveAll(sub), os.Symlink(home, sub)); err != nil {
				t.Error(err)
			}
		}
		m := &watcher{host: &host{answer: elicit.ApprovedForSession}, during: func() {}}
		turn := turnOf(tool.Options{Environ: environ}, m, work, "untrusted", "workspace-write")
		run := func() string {
			call := tool.Call{ID: "call", Name: "shell", Arguments: `{"command":["touch","made"],"workdir":"sub"}`}
			res := called(t, turn, call)
			return res.Output
		}
		wantAsked, made := []string{sub}, filepath.Join(sub, "made")
		switch when {
		case "before":
			replace()
			wantAsked, made = []string{home}, filepath.Join(home, "made")
		case "during":
			m.during, made = replace, ""
		}
		if out := run(); made == "" && !strings.Contains(out, "was replaced") {
			t.Errorf("replaced %s: %s", when, out)
		}
		if when == "after" {
			m.answer, wantAsked = elicit.Denied, append(wantAsked, home)
			replace()
			run()
			made = ""
		}
		var asked []string
		for _, event := range m.all {
			if req, ok := event.(protocol.ExecApprovalRequest); ok {
				asked = append(asked, req.Cwd)
			}
		}
		if strings.Join(asked, " ") != strings.Join(wantAsked, " ") {
			t.Errorf("replaced %s: asked about %q, want %q", when, asked, wantAsked)
		}
		if _, err := os.Stat(filepath.Join(home, "made")); (err == nil) != (when == "before") {
			t.Errorf("replaced %s: in the other folder: %v", when, err)
		}
		if _, err := os.Stat(made); made != "" && err != nil {
			t.Errorf("replaced %s: %v", when, err)
		}
	}
}
