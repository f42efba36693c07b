package changes

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

// ended is a turn that ran a command, by its events.
func ended() Did {
	return Did{Begun: true, Patches: &Patches{}, Acted: true, Ran: true, Commands: true}
}

// slow is a snapshot that is taken until its context ends.
func slow(ctx context.Context, _ string, _ *git.Options) (*git.Before, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// TestSlowSnapshot checks that a slow snapshot delays a turn by no more than the time limit, once, and not after the
// turn has ended.
func TestSlowSnapshot(t *testing.T) {
	for _, tt := range []struct {
		announced     bool
		ends          time.Duration // of the turn
		begins, ready time.Duration // how long Look and then Ready take
		why           string
	}{
		{true, time.Hour, 0, 5 * time.Second, "reading the folder takes longer than 5s"},
		{true, time.Second, 0, time.Second, errEnded.Error()},
		{false, time.Hour, 2 * time.Second, 0, "reading the folder takes longer than 2s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), tt.ends)
			defer stop()
			begin := time.Now()
			b := Look(ctx, "/", nil, Options{Scratch: git.Scratch{Dir: "/scratch"}, Announced: tt.announced, take: slow})
			must.Equal(t, fmt.Sprintf("announced %t: Look took", tt.announced), tt.begins, time.Since(begin))
			b.Ready()
			b.Ready()
			must.Equal(t, fmt.Sprintf("announced %t: Ready took until", tt.announced), tt.begins+tt.ready, time.Since(begin))
			if got := b.After(ended()); got.From != protocol.ChangesFromEvents || len(got.Unknown) != 1 || got.Unknown[0].Why != tt.why {
				t.Errorf("announced %t: %+v", tt.announced, got)
			}
		})
	}
}

// TestSnapshotEndsWithTurn checks that the end of a turn does not wait for its snapshot.
func TestSnapshotEndsWithTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Look(t.Context(), "/", nil, Options{Scratch: git.Scratch{Dir: "/scratch"}, Announced: true, take: slow})
		go b.Ready()
		synctest.Wait()
		begin := time.Now()
		if got := b.After(ended()); time.Since(begin) > 0 || got.Unknown[0].Why != errEnded.Error() {
			t.Errorf("after %v: %+v", time.Since(begin), got)
		}
		(*Before)(nil).Ready()
	})
}

// TestSnapshotsAreBounded checks that a snapshot waits for a free place, and is given up when its turn ends.
func TestSnapshotsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks, looking, release := make(chan struct{}, 1), 0, make(chan struct{})
		begin := func() (b *Before) {
			b = Look(t.Context(), "/", nil, Options{Scratch: git.Scratch{Dir: "/"}, Looks: looks, Announced: true, take: func(context.Context, string, *git.Options) (*git.Before, error) {
				looking++
				<-release
				return nil, errors.New("no snapshot")
			}})
			go b.Ready()
			synctest.Wait()
			return b
		}
		first, second, third := begin(), begin(), begin()
		must.Equal(t, "snapshots at a time", 1, looking)
		third.After(ended()) // it does not wait for the others
		close(release)
		first.After(ended())
		second.After(ended())
		if looking > 2 || len(looks) != 0 {
			t.Errorf("%d snapshots, %d places taken", looking, len(looks))
		}
	})
}

// TestAnnounced checks that the snapshot of an engine that announces changes is taken before the
// first of them, once, and not in a turn without one.
func TestAnnounced(t *testing.T) {
	for _, tt := range []struct {
		name        string
		ready       int // announced changes
		acts        bool
		takes, gaps int
	}{{"an answer", 0, false, 0, 0}, {"a command", 2, true, 1, 1}, {"a tool that was not announced", 0, true, 0, 1}} {
		takes := 0
		b := Look(t.Context(), "/", nil, Options{Scratch: git.Scratch{Dir: "/scratch"}, Announced: true, take: func(context.Context, string, *git.Options) (*git.Before, error) {
			takes++
			return nil, errors.New("no snapshot")
		}})
		for range tt.ready {
			b.Ready()
		}
		got := b.After(Did{Begun: true, Patches: &Patches{}, Acted: tt.acts})
		if takes != tt.takes || got.From != protocol.ChangesFromEvents || len(got.Unknown) != tt.gaps {
			t.Errorf("%s: %d snapshots, changes from %q, unknown %v", tt.name, takes, got.From, got.Unknown)
		}
	}
}

func TestOrigin(t *testing.T) {
	said := &git.Change{Lines: &git.Lines{Added: 2, Removed: 2}}
	for _, tt := range []struct {
		added, removed int
		said           *git.Change
		want           protocol.ChangeOrigin
	}{
		{2, 2, said, protocol.ByPatch}, {1, 1, said, protocol.ByPatch}, {3, 2, said, protocol.ByCommand}, {2, 3, said, protocol.ByCommand}, {2, 2, nil, protocol.ByCommand},
	} {
		got := originOf(git.Change{Lines: &git.Lines{Added: tt.added, Removed: tt.removed}}, tt.said, true)
		if got != tt.want {
			t.Errorf("%d added, %d removed: %s, want %s", tt.added, tt.removed, got, tt.want)
		}
	}
}

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

// TestPatches joins the changes that several patches make to one file.
func TestPatches(t *testing.T) {
	content := func(s string) *protocol.FileContent { return &protocol.FileContent{Content: s} }
	move := func(to string) *protocol.FileUpdate {
		u := &protocol.FileUpdate{UnifiedDiff: "-1\n+2\n+3\n"}
		if to = "/w/" + to; to != "/w/" {
			u.MovePath = &to
		}
		return u
	}
	type change = map[string]protocol.FileChange
	add, remove, update := change{"/w/a": {Add: content("1\n")}}, change{"/w/a": {Delete: content("1\n")}}, change{"/w/a": {Update: move("")}}
	rename, onward := change{"/w/a": {Update: move("b")}}, change{"/w/b": {Update: move("c")}}
	stay := change{"/w/a": {Update: move("a")}}
	for name, tt := range map[string]struct {
		patches []change
		want    string
	}{
		"added": {[]change{add}, "add a +1-0"}, "deleted": {[]change{remove}, "delete a +0-1"}, "changed": {[]change{update}, "update a +2-1"},
		"changed twice":         {[]change{update, update}, "update a +4-2"},
		"moved to itself":       {[]change{stay}, "update a +2-1"},
		"renamed":               {[]change{rename}, "rename b from a +2-1"},
		"added and changed":     {[]change{add, update}, "add a +3-1"},
		"added and renamed":     {[]change{add, rename}, "add b +3-1"},
		"added and deleted":     {[]change{add, remove}, ""},
		"changed and renamed":   {[]change{update, rename}, "rename b from a +4-2"},
		"changed and deleted":   {[]change{update, remove}, "delete a +2-2"},
		"deleted and added":     {[]change{remove, add}, "update a +1-1"},
		"renamed and changed":   {[]change{rename, {"/w/b": {Update: move("")}}}, "rename b from a +4-2"},
		"renamed and deleted":   {[]change{rename, {"/w/b": {Delete: content("1\n")}}}, "delete a +2-2"},
		"renamed twice":         {[]change{rename, onward}, "rename c from a +4-2"},
		"another file":          {[]change{update, {"/w/b": {Delete: content("1\n")}}}, "update a +2-1, delete b +0-1"},
		"outside of the folder": {[]change{{"/v/x": {Add: content("")}}}, "add /v/x +0-0"},
	} {
		var p Patches
		for _, c := range tt.patches {
			for _, success := range []bool{false, true} {
				p.Begin(protocol.PatchApplyBegin{CallID: "1", Changes: c})
				p.End(protocol.PatchApplyEnd{CallID: "1", Success: success})
			}
			p.End(protocol.PatchApplyEnd{CallID: "1", Success: true}) // of no begin
		}
		show := func(list []git.Change) string {
			var all []string
			for _, c := range list {
				from := ""
				if c.From != "" {
					from = " from " + c.From
				}
				all = append(all, fmt.Sprintf("%s %s%s +%d-%d", c.Kind, c.Path, from, c.Lines.Added, c.Lines.Removed))
			}
			return strings.Join(all, ", ")
		}
		list := p.changes("/w")
		if got := show(list); got != tt.want || p.omitted != 0 {
			t.Errorf("%s: %s, %d omitted", name, got, p.omitted)
		}
		for _, c := range list {
			path := c.Path
			if !filepath.IsAbs(path) {
				path = "/w/" + path
			}
			if got := p.of(path); got == nil || got.Kind != c.Kind {
				t.Errorf("%s: %s is %+v", name, path, got)
			}
		}
		if p.of("/w/other") != nil {
			t.Errorf("%s: another file", name)
		}
		outside := p.elsewhere(func(path string) bool { return strings.HasPrefix(path, "/w/") })
		if want := strings.Contains(tt.want, "/v/"); (show(outside) == tt.want) != want && tt.want != "" || (len(outside) > 0) != want {
			t.Errorf("%s: outside: %s", name, show(outside))
		}
	}
}
