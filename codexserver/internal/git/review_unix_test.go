//go:build unix

package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// TestChangesOfAHostileRepository checks that the diff of a hostile repository has the
// usual format, and that no program runs.
func TestChangesOfAHostileRepository(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\n\ntwo\n")
	r.write("b.txt", "x\n")
	first := r.commit("first")
	trap := filepath.Join(t.TempDir(), "ran")
	script := "touch '" + trap + "'; cat"
	r.configure(all(script, traps...)...)
	r.configure(all("true", "diff.noprefix", "diff.relative", "diff.suppressBlankEmpty", "filter.evil.required")...)
	r.configure(setting{"color.ui", "always"}, setting{"diff.context", "0"}, setting{"diff.interHunkContext", "9"})
	for _, name := range []string{"post-index-change", "fsmonitor-watchman", "reference-transaction"} {
		r.write(".git/hooks/"+name, "#!/bin/sh\n"+script)
		if err := os.Chmod(filepath.Join(r.dir, ".git/hooks", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.write(".git/info/attributes", "* filter=evil diff=evil merge=evil\n")
	r.write("a.txt", "one\n\n2\n")
	r.write("c.txt", "new\n")
	if err := os.Remove(trap); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	const changed = "diff --git a/a.txt b/a.txt\nindex 6b9b3a4..a4bd3a5 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n \n-two\n+2\n"
	const added = "diff --git a/c.txt b/c.txt\nnew file mode 100644\nindex 0000000..3e75765\n--- /dev/null\n+++ b/c.txt\n@@ -0,0 +1 @@\n+new\n"
	for _, tt := range []struct {
		target   protocol.ReviewTarget
		revision string
		want     string
	}{
		{protocol.ReviewUncommitted, "", changed + added},
		{protocol.ReviewBase, "main", changed},
	} {
		c, err := git.Review(t.Context(), r.dir, git.Scratch{Dir: t.TempDir()}, tt.target, tt.revision)
		if err != nil {
			t.Fatal(err)
		}
		drop := func(s string) string {
			var kept []string
			for line := range strings.Lines(s) {
				if !strings.HasPrefix(line, "index ") {
					kept = append(kept, line)
				}
			}
			return strings.Join(kept, "")
		}
		if d := cmp.Diff(drop(tt.want), drop(c.Diff)); d != "" {
			t.Errorf("%s (-want +got)\n%s", tt.target, d)
		}
	}
	if _, err := git.Review(t.Context(), r.dir, git.Scratch{Dir: t.TempDir()}, protocol.ReviewCommit, first); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("a program of the repository was run")
	}
}
