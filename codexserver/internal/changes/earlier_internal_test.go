package changes

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

// TestContinued adds the changes of a turn that continues to those before.
func TestContinued(t *testing.T) {
	change := func(kind, path, from string, lines *git.Lines, by protocol.ChangeOrigin) protocol.Change {
		return changed(git.Change{Path: path, From: from, Kind: git.ChangeKind(kind), Lines: lines}, by)
	}
	const add, update, rename, remove = string(git.Add), string(git.Update), string(git.Rename), string(git.Delete)
	before := []protocol.Change{
		change(add, "a", "", &git.Lines{Added: 2, Removed: 1}, protocol.ByPatch), change(update, "b", "", &git.Lines{Added: 1}, protocol.ByCommand), change(add, "bin", "", nil, protocol.ByOther),
	}
	b := Continued("/w", before)
	if f := b.After(Did{Begun: true, Patches: &Patches{}, Commands: true}); len(f.Unknown) != 1 || f.Unknown[0].Why != errCut.Error() || f.Untold == "" || cmp.Diff(before, f.List) != "" {
		t.Errorf("the folder before the turn is thought known: %+v", f)
	}
	got := withEarlier(before, []protocol.Change{
		change(update, "a", "", &git.Lines{Added: 10, Removed: 20}, protocol.ByPatch), // added before, so it is new
		change(rename, "c", "b", &git.Lines{Added: 4, Removed: 5}, protocol.ByPatch),
		change(update, "bin", "", &git.Lines{Added: 7}, protocol.ByPatch),
		change(remove, "d", "", nil, protocol.ByPatch), change(update, "d", "", nil, protocol.ByPatch),
	})
	want := []protocol.Change{
		change(add, "a", "", &git.Lines{Added: 12, Removed: 21}, protocol.ByPatch), change(rename, "c", "b", &git.Lines{Added: 5, Removed: 5}, protocol.ByPatch),
		change(add, "bin", "", &git.Lines{Added: 7}, protocol.ByPatch), change(update, "d", "", nil, protocol.ByPatch),
	}
	must.Equal(t, "the changes of both", want, got)
}

// TestNotes names so many sections that are not in a diff, and counts the others.
func TestNotes(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "", 100: "", 101: "# not in this diff: 1 more\n", 110: "# not in this diff: 10 more\n"} {
		var all notes
		for range n {
			all.add("why", "what")
		}
		if got := all.text(); strings.Count(got, "# why: what\n") != min(n, 100) || !strings.HasSuffix(got, want) || (want == "") != !strings.Contains(got, " more\n") {
			t.Errorf("%d: %q", n, got)
		}
	}
}
