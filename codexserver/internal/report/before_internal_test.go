package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestContinue takes over what the process before reported, and adds what this one does.
func TestContinue(t *testing.T) {
	change := func(kind repo.ChangeKind, path, from string, lines *repo.Lines, by Origin) Change {
		return Change{repo.Change{Path: path, From: from, Kind: kind, Lines: lines}, by}
	}
	before := Report{
		Commands: []turnlog.Command{
			{ID: 3, Shown: "make", Cwd: "/w", Exit: &turnlog.Exit{Code: 2, Duration: 1500 * time.Millisecond}, ApprovedBy: approval.ByDesk}, {ID: 4, Shown: "sleep"},
		},
		Refused: []turnlog.Refusal{{Kind: "command", What: "rm", Cwd: "/w", Why: "no", By: approval.ByClient, Reason: "declined"}},
		dropped: turnlog.Dropped{Commands: 5, Refused: 6},
		Changes: Changes{List: []Change{
			change(repo.Add, "a", "", &repo.Lines{Added: 2, Removed: 1}, ByPatch), change(repo.Update, "b", "", &repo.Lines{Added: 1}, ByCommand), change(repo.Add, "bin", "", nil, ByOther),
		}},
	}
	turn := turnlog.NewTurn()
	w := New(turn, Options{})
	w.Continue(before.JSON(0))
	did := turn.Did()
	if diff := cmp.Diff(before.Commands, did.Commands) + cmp.Diff(before.Refused, did.Refused) + cmp.Diff(before.dropped, did.Dropped); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if w.tree.failed != errCut {
		t.Errorf("the folder before the turn is thought known: %v", w.tree.failed)
	}
	got := w.withEarlier([]Change{
		change(repo.Update, "a", "", &repo.Lines{Added: 10, Removed: 20}, ByPatch), // added before, so it is new
		change(repo.Rename, "c", "b", &repo.Lines{Added: 4, Removed: 5}, ByPatch),
		change(repo.Update, "bin", "", &repo.Lines{Added: 7}, ByPatch),
		change(repo.Delete, "d", "", nil, ByPatch),
		change(repo.Update, "d", "", nil, ByPatch),
	})
	want := []Change{
		change(repo.Add, "a", "", &repo.Lines{Added: 12, Removed: 21}, ByPatch), change(repo.Rename, "c", "b", &repo.Lines{Added: 5, Removed: 5}, ByPatch),
		change(repo.Add, "bin", "", &repo.Lines{Added: 7}, ByPatch), change(repo.Update, "d", "", nil, ByPatch),
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(repo.Change{})); diff != "" {
		t.Errorf("the changes of both (-want +got):\n%s", diff)
	}
	turn = turnlog.NewTurn()
	w = New(turn, Options{})
	if w.Continue([]byte(`{"changes":5}`)); w.tree.failed != errCut || len(w.withEarlier(nil)) != 0 || len(turn.Did().Commands) != 0 {
		t.Error("something is taken from what is no report")
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

// TestCutReport gives a report too little room. What is kept and what is left out are together all of
// it: the first changes, the last commands and refusals, a text's beginning.
func TestCutReport(t *testing.T) {
	r := Report{ThreadID: "t", Content: strings.Repeat("é\n", 3000), More: "codex-show"}
	const n = 300
	for i := range n {
		r.Plan = append(r.Plan, protocol.PlanStep{Step: fmt.Sprint("step", i), Status: "pending"})
		r.Commands = append(r.Commands, turnlog.Command{ID: i + 1, Shown: "make"})
		r.Refused = append(r.Refused, turnlog.Refusal{Kind: "other", What: fmt.Sprint("what", i)})
		r.Changes.List = append(r.Changes.List, Change{repo.Change{Path: fmt.Sprint("path", i), Kind: repo.Add}, ByPatch})
		r.Changes.Unknown = append(r.Changes.Unknown, repo.Gap{Path: fmt.Sprint("gap", i), Why: "why"})
	}
	r.dropped, r.Changes.omitted = turnlog.Dropped{Commands: 7, Refused: 8}, 9
	for _, limit := range []int{1, 4096, 4097, 6000, 20_000} {
		text := r.JSON(limit)
		var got struct {
			Content                                   string
			Plan, Commands, Refused, Changes, Unknown []jsontext.Value
			Truncated                                 truncation
		}
		if err := json.Unmarshal(text, &got, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		if room := max(limit, 4096); len(text) > room || len(text) < room-room/5 {
			t.Errorf("limit %d: %d bytes", limit, len(text))
		}
		cut := got.Truncated
		if len(got.Content)+cut.Content != len(r.Content) || !strings.HasPrefix(r.Content, got.Content) || len(got.Plan)+cut.Plan != n || len(got.Commands)+cut.Commands != n+7 ||
			len(got.Refused)+cut.Refused != n+8 || len(got.Changes)+cut.Changes != n+9 || len(got.Unknown)+cut.Unknown != n || cut.See != "codex-show" {
			t.Errorf("limit %d: %d bytes, %d steps, %d commands, %d refusals, %d changes, %d gaps, and %+v", limit, len(got.Content), len(got.Plan), len(got.Commands), len(got.Refused), len(got.Changes), len(got.Unknown), cut)
		}
		for what, ok := range map[string]bool{
			"step": strings.Contains(string(got.Plan[0]), `"step0"`), "change": strings.Contains(string(got.Changes[0]), `"path0"`), "gap": strings.Contains(string(got.Unknown[0]), `"gap0"`),
			"command": strings.Contains(string(got.Commands[len(got.Commands)-1]), `"id":300`), "refusal": strings.Contains(string(got.Refused[len(got.Refused)-1]), `"what299"`),
		} {
			if !ok {
				t.Errorf("limit %d: the wrong end of the list of a %s is left out", limit, what)
			}
		}
	}
	short := Report{ThreadID: "t", More: "codex-show"}
	if got := string(short.JSON(0)); got != `{"threadId":"t","content":"","durationMs":0,"changes":[],"commands":[],"refused":[]}` {
		t.Error(got)
	}
}
