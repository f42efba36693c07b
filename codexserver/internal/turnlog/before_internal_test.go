package turnlog

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// TestContinue takes over what the process before reported, and adds what this one does.
func TestContinue(t *testing.T) {
	change := func(kind, path, from string, lines *git.Lines, by protocol.ChangeOrigin) protocol.Change {
		return changed(git.Change{Path: path, From: from, Kind: git.ChangeKind(kind), Lines: lines}, by)
	}
	const add, update, rename, remove = string(git.Add), string(git.Update), string(git.Rename), string(git.Delete)
	before := protocol.TurnResult{
		Commands: []protocol.Command{
			{ID: 3, Command: "make", Cwd: "/w", ExitCode: new(2), DurationMS: new(int64(1500)), ApprovedBy: "desk"}, {ID: 4, Command: "sleep"},
		},
		Refused:   []protocol.Refusal{{Kind: "command", What: "rm", Cwd: "/w", Why: "no", By: "client", Reason: "declined"}},
		Truncated: protocol.Truncated{Commands: 5, Refused: 6},
		Changes: []protocol.Change{
			change(add, "a", "", &git.Lines{Added: 2, Removed: 1}, protocol.ByPatch), change(update, "b", "", &git.Lines{Added: 1}, protocol.ByCommand), change(add, "bin", "", nil, protocol.ByOther),
		},
	}
	w := NewTurn(Options{})
	w.Continue(&before)
	did := w.did().result
	if diff := cmp.Diff(before.Commands, did.Commands) + cmp.Diff(before.Refused, did.Refused) + cmp.Diff(before.Truncated, did.Truncated); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if w.tree.failed != errCut {
		t.Errorf("the folder before the turn is thought known: %v", w.tree.failed)
	}
	got := w.withEarlier([]protocol.Change{
		change(update, "a", "", &git.Lines{Added: 10, Removed: 20}, protocol.ByPatch), // added before, so it is new
		change(rename, "c", "b", &git.Lines{Added: 4, Removed: 5}, protocol.ByPatch),
		change(update, "bin", "", &git.Lines{Added: 7}, protocol.ByPatch),
		change(remove, "d", "", nil, protocol.ByPatch),
		change(update, "d", "", nil, protocol.ByPatch),
	})
	want := []protocol.Change{
		change(add, "a", "", &git.Lines{Added: 12, Removed: 21}, protocol.ByPatch), change(rename, "c", "b", &git.Lines{Added: 5, Removed: 5}, protocol.ByPatch),
		change(add, "bin", "", &git.Lines{Added: 7}, protocol.ByPatch), change(update, "d", "", nil, protocol.ByPatch),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the changes of both (-want +got):\n%s", diff)
	}
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
