package turn_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestDiff checks that the diff includes changes by commands and by a failed turn, and names
// patches outside of the folder, which are among the changes. A patch of the folder that has no effect is not.
func TestDiff(t *testing.T) {
	tt := newTurn(t, func(tt *work) { tt.write("a.go", "a\nb\n"); tt.write("kept.go", "x\n") })
	outside := filepath.Join(t.TempDir(), "b\n.txt")
	tt.emit(protocol.TurnDiff{UnifiedDiff: "what the model says"})
	tt.emit(protocol.PatchApplyBegin{CallID: "p", Changes: map[string]protocol.FileChange{
		outside: {Add: &protocol.FileContent{Content: "x"}}, filepath.Join(tt.dir, "undone"): {Add: &protocol.FileContent{Content: "x"}},
	}})
	tt.emit(protocol.PatchApplyEnd{CallID: "p", Success: true})
	tt.run(func() { tt.write("a.go", "a\nB\n") }, "make")
	if got, want := numstatOf(tt.end(errors.New("no model"))), "1\t0\t"+git.Quote(outside)+"\n1\t1\ta.go"; got != want {
		t.Errorf("changes:\n%s\nwant:\n%s", got, want)
	}
	var lines []string
	for line := range strings.Lines(tt.c.Found().Diff) {
		if !strings.HasPrefix(line, "index ") {
			lines = append(lines, line)
		}
	}
	want := "diff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n" +
		"# changed by patches outside of the folder: add " + git.Quote(outside) + "\n"
	must.Equal(t, "the diff", want, strings.Join(lines, ""))
}

func TestDiffWithoutSnapshot(t *testing.T) {
	dir := t.TempDir()
	const note = "# from the patches of the turn alone: commands may have changed more\n"
	for _, tt := range []struct{ name, diff, want string }{
		{"none", "", ""},
		{"one", "diff --git a/x b/x\n", note + "diff --git a/x b/x\n"},
		{"a long one", "diff --git a/x b/x\n" + strings.Repeat("é", 3<<20), note + "# not in this diff (too large): a/x b/x\n"},
		{"a binary file", "diff --git a/x b/x\nindex 1..2\nBinary files differ\ndiff --git a/y b/y\n", note + "diff --git a/y b/y\n# not in this diff (it is not text): a/x b/x\n"},
		{"below the folder", "diff --git a/" + dir + "/x b/" + dir + "/x\n--- a/" + dir + "/x\n", note + "diff --git a/x b/x\n--- a/x\n"},
		{"outside of the folder", "diff --git a//elsewhere b//elsewhere\n", note + "# not in this diff (it is outside of the folder): a//elsewhere b//elsewhere\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newWatch(changes.Options{})
			c.Begin(t.Context(), protocol.SessionConfigured{Cwd: dir}, nil)
			if tt.diff != "" {
				c.Event(protocol.TurnDiff{UnifiedDiff: "an earlier one"})
				c.Event(protocol.TurnDiff{UnifiedDiff: tt.diff})
			}
			c.End(nil)
			if got := c.Found().Diff; got != tt.want {
				t.Errorf("%d bytes: %.200q", len(got), got)
			}
		})
	}
}
