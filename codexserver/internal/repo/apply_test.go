package repo_test

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

const text = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"

// replaced returns text with lines replaced.
func replaced(pairs ...string) string {
	for i := range pairs {
		if i%2 == 0 {
			pairs[i], pairs[i+1] = pairs[i]+"\n", pairs[i+1]+"\n"
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// TestApply merges many pairs of changes. Those in folders of their own share a repository:
// one has all conflicts, and one all others.
func TestApply(t *testing.T) {
	t.Parallel()
	type set = map[string]string
	type row struct {
		name     string
		config   []setting
		base     set
		mine     set // changes in the worktree
		theirs   set // changes in the caller's tree meanwhile
		want     set // the caller's tree afterwards, "-" for no file
		conflict set // or the conflicts by path
		moves    set
		top      bool // it needs a repository of its own
	}
	rows := []row{
		{name: "nothing", base: set{"a": text}},
		{name: "a change", base: set{"a": text}, mine: set{"a": "x\n"}, want: set{"a": "x\n"}},
		{name: "both, other lines", base: set{"a": text}, mine: set{"a": replaced("1", "one")}, theirs: set{"a": replaced("9", "nine")}, want: set{"a": replaced("1", "one", "9", "nine")}},
		{name: "both, the same", base: set{"a": text}, mine: set{"a": "x"}, theirs: set{"a": "x"}, want: set{"a": "x"}},
		{name: "both, the same lines", base: set{"a": text, "b": "b"}, mine: set{"a": replaced("5", "five"), "b": "c"}, theirs: set{"a": replaced("5", "FIVE")}, conflict: set{"a": "both have changed the same lines"}},
		{name: "binary", base: set{"a": "a\x00b"}, mine: set{"a": "a\x00c"}, want: set{"a": "a\x00c"}},
		{name: "binary, both", base: set{"a": "a\x00b\n1\n2\n3\n"}, mine: set{"a": "a\x00b\nx\n2\n3\n"}, theirs: set{"a": "a\x00b\n1\n2\nx\n"}, conflict: set{"a": "both have changed it, and it is not text"}},
		{name: "a new file, in a new folder", base: set{"a": text}, mine: set{"s/t/b": "b", "c": ""}, want: set{"s/t/b": "b", "c": ""}},
		{name: "a new file that is there untracked", base: set{"a": text}, mine: set{"b": "b"}, theirs: set{"b": "c"}, conflict: set{"b": "both have added it with different contents"}},
		{name: "a new file that is there ignored", base: set{".gitignore": "*.o\n"}, mine: set{".gitignore": "", "b.o": "b"}, theirs: set{"b.o": "c"}, conflict: set{"b.o": "both have added it with different contents"}},
		{name: "a new file that is there, the same", base: set{"a": text}, mine: set{"b": "b"}, theirs: set{"b": "b"}, want: set{"b": "b"}},
		{name: "a new file where a folder is", base: set{"a": text}, mine: set{"b": "b"}, theirs: set{"b/c": "c"}, conflict: set{"b": "a folder is there"}},
		{name: "a new file below a file", base: set{"a": text}, mine: set{"b/c": "b"}, theirs: set{"b": "c"}, conflict: set{"b/c": "b is not a folder"}},
		{name: "a folder that became a link", base: set{"s/a": text, "x": "x"}, mine: set{"s/b": "b"}, theirs: set{"s/a": "-", "s": "> ../elsewhere"}, conflict: set{"s/b": "s is a symbolic link"}},
		{name: "a new file in another repository", base: set{"a": text}, mine: set{"s/b": "b"}, theirs: set{"s/.git/HEAD": "x", "s/x": "x"}, conflict: set{"s/b": "s is a repository of its own"}},
		{name: "a file becomes a folder", base: set{"a": text}, mine: set{"a": "-", "a/b/c": "x"}, want: set{"a": "-", "a/b/c": "x"}},
		{name: "a folder becomes a file", base: set{"a/b": text}, mine: set{"a/b": "-", "a": "x"}, conflict: set{"a": "a folder is there"}},
		{name: "a deletion, and its folder", base: set{"s/t/a": text, "b": "b"}, mine: set{"s/t/a": "-"}, want: set{"s/t/a": "-", "s": "-"}},
		{name: "a deletion in a folder with more", base: set{"s/a": text, "b": "b"}, mine: set{"s/a": "-"}, theirs: set{"s/x": "x"}, want: set{"s/a": "-"}},
		{name: "a deletion of what was changed", base: set{"a": text, "b": "b"}, mine: set{"a": "-"}, theirs: set{"a": "x"}, conflict: set{"a": "the worktree has deleted it, and the caller has changed it"}},
		{name: "a change of what was deleted", base: set{"a": text, "b": "b"}, mine: set{"a": "x"}, theirs: set{"a": "-"}, conflict: set{"a": "the caller has deleted it, and the worktree has changed it"}},
		{name: "deleted on both sides", base: set{"a": text, "b": "b"}, mine: set{"a": "-"}, theirs: set{"a": "-"}, want: set{}},
		{name: "a mode", base: set{"a": text}, mine: set{"a": "+x"}, want: set{"a": "+x" + text}},
		{name: "a mode and lines", base: set{"a": text}, mine: set{"a": "+x"}, theirs: set{"a": "x"}, want: set{"a": "+xx"}},
		{name: "a mode and lines on one side, other lines on the other", base: set{"a": text}, mine: set{"a": "+x" + replaced("1", "one")}, theirs: set{"a": replaced("9", "nine")}, want: set{"a": "+x" + replaced("1", "one", "9", "nine")}},
		{name: "a mode that goes", base: set{"a": "#!"}, theirs: set{"a": "+x"}, mine: set{"b": "x"}, want: set{"b": "x"}},
		{name: "a move", base: set{"a": text}, mine: set{"a": "-", "s/b": text + "10\n"}, want: set{"a": "-", "s/b": text + "10\n"}, moves: set{"a": "s/b"}},
		{name: "a move of what was changed", base: set{"a": text, "c": "c"}, mine: set{"a": "-", "b": text}, theirs: set{"a": "x"}, conflict: set{"a": "the worktree has deleted it, and the caller has changed it"}},
		{name: "a link", base: set{"a": text, "l": "> a"}, mine: set{"l": "> s/b", "s/b": "b", "s/up": "> ../a"}, want: set{"l": "> s/b", "s/b": "b", "s/up": "> ../a"}},
		{name: "a link in place of a file", base: set{"a": text, "b": "b"}, mine: set{"b": "> a"}, want: set{"b": "> a"}},
		{name: "a file in place of a link", base: set{"a": text, "b": "> a"}, mine: set{"b": "B"}, want: set{"b": "B"}},
		{name: "links on both sides", base: set{"a": "a", "l": "> a"}, mine: set{"l": "> b"}, theirs: set{"l": "> c"}, conflict: set{"l": "both have changed it, and it is not a regular file in all versions"}},
		{name: "links that lead out", top: true, base: set{"a": "a"}, mine: set{"abs": "> /etc/passwd", "up": "> ../x", "git": "> .git/config", "in": "> s/../../x"},
			conflict: set{"abs": leads, "up": leads, "git": leads, "in": leads}},
		{name: "line ends as they are", base: set{"a": "1\r\n2\r\n3\r\n4\r\n"}, mine: set{"a": "one\r\n2\r\n3\r\n4\r\n"}, theirs: set{"a": "1\r\n2\r\n3\r\nfour\r\n"}, want: set{"a": "one\r\n2\r\n3\r\nfour\r\n"}},
		{name: "line ends by attribute", base: set{".gitattributes": "*.bat text eol=crlf\n", "a.bat": "1\n2\n3\n4\n"}, mine: set{"a.bat": "one\r\n2\r\n3\r\n4\r\n", "new.bat": "1\n"},
			theirs: set{"a.bat": "1\r\n2\r\n3\r\nfour\r\n"}, want: set{"a.bat": "one\r\n2\r\n3\r\nfour\r\n", "new.bat": "1\r\n"}},
		{name: "line ends by configuration", config: all("true", "core.autocrlf"), base: set{"a": "1\n2\n3\n4\n"}, mine: set{"a": "one\r\n2\r\n3\r\n4\r\n"}, theirs: set{"a": "1\r\n2\r\n3\r\n4\r\n"}, want: set{"a": "one\r\n2\r\n3\r\n4\r\n"}},
		{name: "odd names", base: set{"a": "a"}, mine: set{"ü *?[": "1", "new\nline": "2", "-dash": "3", ":(top)x": "4", "\"q\\": "5"}, want: set{"ü *?[": "1", "new\nline": "2", "-dash": "3", ":(top)x": "4", "\"q\\": "5"}},
	}
	var groups [2]row // what merges, and conflicts
	for _, tt := range rows {
		if tt.top || tt.config != nil || tt.moves != nil {
			continue
		}
		group := &groups[min(len(tt.conflict), 1)]
		group.name += tt.name + "; "
		for to, from := range map[*set]set{&group.base: tt.base, &group.mine: tt.mine, &group.theirs: tt.theirs, &group.want: tt.want, &group.conflict: tt.conflict} {
			if *to == nil && from != nil {
				*to = set{}
			}
			for name, content := range from {
				if to == &group.conflict && strings.HasSuffix(content, " is a symbolic link") || strings.HasSuffix(content, " is a repository of its own") || strings.HasSuffix(content, " is not a folder") {
					content = folderOf(tt.name) + "/" + content
				}
				(*to)[folderOf(tt.name)+"/"+name] = content
			}
		}
	}
	rows = slices.DeleteFunc(rows, func(tt row) bool { return !tt.top && tt.config == nil && tt.moves == nil })
	for _, tt := range append(rows, groups[:]...) {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.configure(tt.config...)
			b.commit(tt.base)
			w := b.create(repo.CreateOptions{})
			lay(t, w.Path(), tt.mine)
			lay(t, b.dir, tt.theirs)
			before, index := files(t, b.dir), b.git("ls-files", "-s")
			whole := tree(t, b.dir)
			p, err := w.Plan(t.Context())
			same(t, "the caller's tree after planning", whole, tree(t, b.dir))
			if tt.conflict != nil {
				var conflict *repo.ConflictError
				if !errors.As(err, &conflict) {
					t.Fatalf("%v", err)
				}
				got := set{}
				for _, c := range conflict.Conflicts {
					got[c.Path] = c.Reason
				}
				same(t, "conflicts", tt.conflict, got)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			moves := set{}
			for from, change := range p.Changes() {
				if change.Update != nil && change.Update.MovePath != nil {
					moves[rel(t, b.dir, from)] = rel(t, b.dir, *change.Update.MovePath)
				}
			}
			if tt.moves != nil {
				same(t, "moves", tt.moves, moves)
			}
			if err := p.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := before
			for name, content := range tt.want {
				want[name] = content
				if content == "-" {
					delete(want, name)
					if path.Base(name) == "s" && exists(filepath.Join(b.dir, filepath.FromSlash(name))) { // the folder above
						t.Error("the folder is left")
					}
				}
			}
			same(t, "the caller's tree", want, files(t, b.dir))
			if got := b.git("ls-files", "-s"); got != index {
				t.Errorf("the index changed:\n%s\n%s", index, got)
			}
			// It was saved, and applying it again changes nothing.
			if err := b.plan(w).Apply(t.Context()); err != nil {
				t.Error(err)
			}
			same(t, "the caller's tree, applied twice", want, files(t, b.dir))
			if err := w.Discard(t.Context(), ""); err != nil {
				t.Error(err)
			}
			if left := b.git("worktree", "list"); strings.Count(left, "\n") > 0 {
				t.Errorf("worktrees left: %s", left)
			}
		})
	}
}

// folderOf returns the folder of a row of TestApply.
func folderOf(row string) string { return strings.NewReplacer(" ", "-", ",", "").Replace(row) }

const leads = "it becomes a symbolic link out of the tree, or to git's files"

func rel(t *testing.T, dir, path string) string {
	t.Helper()
	name, err := filepath.Rel(dir, path)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(name)
}

func TestChanges(t *testing.T) {
	b := newBench(t)
	b.commit(map[string]string{"a": text, "gone": "g\n", "run": "r\n", "bin": "\x00", "moved": text + text})
	w := b.create(repo.CreateOptions{})
	lay(t, w.Path(), map[string]string{"a": replaced("5", "five"), "gone": "-", "run": "+x", "bin": "\x00\x01", "l": "> a", "new": "n\n", "moved": "-", "to": text + text, ".vscode/tasks.json": "{}"})
	p := b.plan(w)
	at := func(name string) string { return filepath.Join(b.dir, name) }
	to := at("to")
	want := map[string]protocol.FileChange{
		at("a"):     {Update: &protocol.FileUpdate{UnifiedDiff: "@@ -4,3 +4,3 @@\n 4\n-5\n+five\n 6\n"}},
		at("gone"):  {Delete: &protocol.FileContent{Content: "g\n"}},
		at("run"):   {Update: &protocol.FileUpdate{UnifiedDiff: "old mode 100644\nnew mode 100755\n"}},
		at("l"):     {Add: &protocol.FileContent{Content: "a symbolic link to a\n"}},
		at("new"):   {Add: &protocol.FileContent{Content: "n\n"}},
		at("moved"): {Update: &protocol.FileUpdate{MovePath: &to}},
		at("bin"): {Update: &protocol.FileUpdate{UnifiedDiff: "@@ -1 +1 @@\n-a binary file: 1 bytes, SHA-256 6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d\n" +
			"+a binary file: 2 bytes, SHA-256 b413f47d13ee2fe6c845b2ee141af81de858df4ec549a58b7970bb96645bc8d2\n"}},
		at(".vscode/tasks.json"): {Add: &protocol.FileContent{Content: "{}"}},
	}
	if diff := cmp.Diff(want, p.Changes()); diff != "" {
		t.Error("(-want +got)\n" + diff)
	}
	if diff := cmp.Diff([]string{`l becomes a symbolic link to "a".`, "run becomes executable."}, p.Notes()); diff != "" {
		t.Error("(-want +got)\n" + diff)
	}
	if !p.Protected() {
		t.Error(".vscode is not protected")
	}
}

// TestApplyChanged changes files after they were shown. Applying does not overwrite them.
func TestApplyChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit(map[string]string{"a": "a", "b": "b"})
	w := b.create(repo.CreateOptions{})
	lay(t, w.Path(), map[string]string{"a": "A", "b": "B", "new": "n", "s/x": "x"})
	p := b.plan(w)
	for name, theirs := range map[string]map[string]string{
		"content":          {"b": "their b"},
		"mode":             {"b": "+x"},
		"deleted":          {"b": "-"},
		"made":             {"new": "theirs"},
		"a folder":         {"new/x": "theirs"},
		"a link":           {"b": "> a"},
		"a folder's place": {"s": "> ../elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			lay(t, b.dir, theirs)
			before := tree(t, b.dir)
			var changed *repo.ChangedError
			if err := p.Apply(t.Context()); !errors.As(err, &changed) || errors.As(err, new(*repo.UnfinishedError)) {
				t.Errorf("%v", err)
			}
			same(t, "the caller's tree", before, tree(t, b.dir))
			lay(t, b.dir, map[string]string{"b": "-", "new": "-", "s": "-"})
			lay(t, b.dir, map[string]string{"b": "b"})
		})
	}
	if err := p.Apply(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestApplyUnfinished changes a file while the plan is applied. Nothing is written over it, and
// the error is an UnfinishedError, as files were written before.
func TestApplyUnfinished(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := map[string]string{"a": "a", "run": "r", "s/gone": "g", "z": "z", "l": "> a"}
	b.commit(first)
	w := b.create(repo.CreateOptions{ThreadID: "t"})
	for _, at := range []int{1, 4, 8} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			b := b.in(t)
			lay(t, b.dir, map[string]string{"n": "-"}) // of the row before
			lay(t, b.dir, first)
			lay(t, b.dir, map[string]string{"run": "+x"})
			lay(t, w.Path(), map[string]string{"a": "A", "n/new": "x", "run": "R", "s/gone": "-", "l": "> z", "z": fmt.Sprint("Z", at)})
			p := b.plan(w)
			done := 0
			p.SetStep(func() {
				if done++; done == at {
					lay(t, b.dir, map[string]string{"z": "theirs"})
				}
			})
			err := p.Apply(t.Context())
			var unfinished *repo.UnfinishedError
			var changed *repo.ChangedError
			if !errors.As(err, &unfinished) || !errors.As(err, &changed) || changed.Path != filepath.Join(b.dir, "z") {
				t.Errorf("%v", err)
			}
			if got := files(t, b.dir)["z"]; got != "theirs" {
				t.Errorf("z is %q", got)
			}
			if left := b.store.Unfinished(); len(left) != 1 || left[0].Branch != "branch main" || left[0].Root != b.dir {
				t.Errorf("unfinished: %v", left)
			}
			lay(t, b.dir, map[string]string{"z": "z"})
			if err := b.plan(w).Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := files(t, w.Path())
			want["run"] = "+xR"
			same(t, "the caller's tree", want, files(t, b.dir))
			if left := b.store.Unfinished(); left != nil {
				t.Errorf("unfinished: %v", left)
			}
		})
	}
}

// TestApplyFailsAtOnce checks that nothing is left, no mark either, if the first file cannot be
// written.
func TestApplyFailsAtOnce(t *testing.T) {
	b := newBench(t)
	b.commit(map[string]string{"z": "z"})
	w := b.create(repo.CreateOptions{})
	lay(t, w.Path(), map[string]string{"n/m/new": "x"})
	p := b.plan(w)
	p.SetStep(func() { lay(t, b.dir, map[string]string{"n/m/new": "theirs"}) }) // after the temporary file is written
	var changed *repo.ChangedError
	if err := p.Apply(t.Context()); !errors.As(err, &changed) || errors.As(err, new(*repo.UnfinishedError)) {
		t.Errorf("%v", err)
	}
	same(t, "the caller's tree", map[string]string{"z": "z", "n/m/new": "theirs"}, files(t, b.dir))
	if left := b.store.Unfinished(); left != nil {
		t.Errorf("unfinished: %v", left)
	}
}
