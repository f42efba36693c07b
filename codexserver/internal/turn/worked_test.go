package turn_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// turn is a turn in a repository, as an engine would report it.
type work struct {
	t    *testing.T
	dir  string
	c    *recorder
	last int // the number of the last call
}

func newTurn(t *testing.T, lay func(tt *work)) *work {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	tt := &work{t: t, dir: dir}
	tt.git("init", "-q", "-b", "main")
	lay(tt)
	tt.git("add", "-A")
	tt.git("commit", "-q", "-m", "first")
	tt.begin(changes.Options{})
	return tt
}

// begin begins the turn with a snapshot.
func (tt *work) begin(o changes.Options) {
	tt.t.Helper()
	o.Scratch = git.Scratch{Dir: tt.t.TempDir()}
	tt.c = newWatch(o)
	tt.c.Begin(tt.t.Context(), protocol.SessionConfigured{SessionID: "t", Model: "m", Cwd: tt.dir}, nil)
	tt.t.Cleanup(func() {
		if left, err := os.ReadDir(o.Scratch.Dir); err != nil || len(left) > 0 {
			tt.t.Errorf("left: %v, %v", left, err)
		}
	})
}

func (tt *work) git(args ...string) string {
	tt.t.Helper()
	return servertest.Git(tt.t, tt.dir, args...)
}

func (tt *work) write(name, text string) {
	tt.t.Helper()
	path := filepath.Join(tt.dir, name)
	must.OK(tt.t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
}

// emit reports an event as a waiting engine's host does.
func (tt *work) emit(m protocol.EventMsg) {
	tt.c.Ready(m)
	tt.c.Event(m)
}

func (tt *work) call() string {
	tt.last++
	return fmt.Sprint("call", tt.last)
}

// patch applies a patch that replaces the content of a file.
func (tt *work) patch(name, text, diff string) {
	tt.t.Helper()
	id := tt.call()
	tt.emit(protocol.PatchApplyBegin{CallID: id, Changes: map[string]protocol.FileChange{filepath.Join(tt.dir, name): {Update: &protocol.FileUpdate{UnifiedDiff: diff}}}})
	tt.write(name, text)
	tt.emit(protocol.PatchApplyEnd{CallID: id, Success: true})
}

func (tt *work) run(do func(), argv ...string) {
	id := tt.call()
	tt.emit(protocol.ExecCommandBegin{CallID: id, Command: argv, Cwd: tt.dir})
	do()
	tt.emit(protocol.ExecCommandEnd{CallID: id, Duration: protocol.Duration(time.Second)})
}

// TestReadOnly checks that nobody looks at the folder for commands that can change no file, so that a change of somebody
// else is not the turn's, and that a command which can has its look before it.
func TestReadOnly(t *testing.T) {
	for _, writes := range []bool{false, true} {
		tt := newTurn(t, func(tt *work) { tt.write("a", "1\n") })
		tt.end(nil)
		tt.begin(changes.Options{Announced: true})
		tt.emit(protocol.ExecCommandBegin{CallID: tt.call(), Command: []string{"cat", "a"}, Cwd: tt.dir, ReadOnly: true})
		tt.write("a", "of the user\n")
		want := protocol.ChangesFromEvents
		if writes {
			want = protocol.ChangesFromTree
			tt.run(func() { tt.write("b", "2\n") }, "cp", "a", "b")
		}
		r := tt.end(nil)
		if r.ChangesFrom != want || len(r.Unknown) > 0 || writes != (len(r.Changes) == 1) || writes && r.Changes[0].Path != "b" {
			t.Errorf("writes %t: %+v from %q, unknown %+v", writes, r.Changes, r.ChangesFrom, r.Unknown)
		}
	}
}

// numstat returns git's counts of changed lines in the tree, including untracked files, sorted by path.
func (tt *work) numstat() string {
	tt.t.Helper()
	tt.git("add", "--intent-to-add", "--ignore-removal", ".")
	lines := strings.Split(strings.TrimSpace(tt.git("diff", "--numstat")), "\n")
	slices.SortFunc(lines, func(a, b string) int {
		return strings.Compare(a[strings.LastIndexByte(a, '\t'):], b[strings.LastIndexByte(b, '\t'):])
	})
	return strings.Join(lines, "\n")
}

// end ends the turn and reads its result.
func (tt *work) end(err error) protocol.TurnResult {
	tt.t.Helper()
	tt.c.End(err)
	r := tt.c.So()
	out := r.JSON(setting.DefaultResult)
	check(tt.t, schema(tt.t), out, setting.DefaultResult)
	return readBack(tt.t, out)
}

// numstatOf returns the counts of a result, as [work.numstat] does.
func numstatOf(r protocol.TurnResult) string {
	var lines []string
	for _, c := range r.Changes {
		added, removed := "-", "-"
		if c.Added != nil {
			added, removed = fmt.Sprint(*c.Added), fmt.Sprint(*c.Removed)
		}
		lines = append(lines, added+"\t"+removed+"\t"+c.Path)
	}
	return strings.Join(lines, "\n")
}

// TestOrigins checks what a change is attributed to: a patch that explains it, else the commands
// and tools of the turn if it ran any.
func TestOrigins(t *testing.T) {
	for name, want := range map[string]string{
		"":          "a.go patch, b.go other, c.go other, d.go other",
		"a command": "a.go patch, b.go command, c.go command, d.go command",
		"a tool":    "a.go patch, b.go command, c.go command, d.go command",
	} {
		tt := newTurn(t, func(tt *work) {
			tt.write("a.go", "a\n")
			tt.write("b.go", "b\n")
			tt.write("c.go", "c\n")
			tt.write("d.go", "d\ne\n")
		})
		tt.patch("a.go", "x\n", "-a\n+x\n")
		tt.patch("b.go", "x\ny\n", "-b\n+x\n") // and another line
		tt.write("c.go", "x\n")
		tt.patch("d.go", "x\n", "-d\n+x\n") // and one line less
		switch name {
		case "a command":
			tt.run(func() {}, "true")
		case "a tool":
			tt.emit(protocol.MCPToolCallBegin{CallID: "tool"})
			tt.emit(protocol.MCPToolCallEnd{CallID: "tool"})
		}
		tt.c.End(nil)
		var got []string
		for _, c := range tt.c.So().Changes {
			got = append(got, c.Path+" "+string(c.By))
		}
		must.Equal(t, name, want, strings.Join(got, ", "))
	}
}

// TestTurnWithoutSnapshot checks that the changes are those of the patches if there is no snapshot, and when a caller is
// told that those of commands are not known: not if nobody wants to know them, and not without a command.
func TestTurnWithoutSnapshot(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	dir, scratch := t.TempDir(), git.Scratch{Dir: t.TempDir()}
	for _, tt := range []struct {
		name    string
		ctx     context.Context
		dir     string
		o       changes.Options
		command bool
		untold  bool
	}{
		{"interrupted", ended, dir, changes.Options{Scratch: scratch}, true, true},
		{"no command", ended, dir, changes.Options{Scratch: scratch}, false, false},
		{"no folder", t.Context(), filepath.Join(dir, "no", "folder"), changes.Options{Scratch: scratch}, true, true},
		{"switched off", t.Context(), dir, changes.Options{Scratch: scratch, Off: true}, true, false},
		{"no folder for snapshots", t.Context(), dir, changes.Options{}, true, false},
		{"a snapshot", t.Context(), dir, changes.Options{Scratch: scratch}, true, false},
	} {
		w := &work{t: t, c: newWatch(tt.o)}
		w.c.Begin(tt.ctx, protocol.SessionConfigured{Cwd: tt.dir}, nil)
		if tt.command {
			w.run(func() {}, "make")
		}
		w.emit(protocol.PatchApplyBegin{CallID: "1", Changes: map[string]protocol.FileChange{"/elsewhere/b.go": {Add: &protocol.FileContent{Content: "b\n"}}}})
		w.emit(protocol.PatchApplyEnd{CallID: "1", Success: true})
		got := w.end(&engine.TurnError{Message: "x"})
		if from := got.ChangesFrom; (from == "tree") != (tt.name == "a snapshot") || got.Status != "failed" || numstatOf(got) != "1\t0\t/elsewhere/b.go" {
			t.Errorf("%s: %+v", tt.name, got)
		}
		must.Equal(t, tt.name+": the caller is told", tt.untold, strings.Contains(w.c.Result().Content, "What the commands of this turn changed is not known"))
	}
}

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
	for line := range strings.Lines(tt.c.diff) {
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
			must.Equal(t, "the diff", tt.want, c.diff)
		})
	}
}

// schema returns the schema. It is changed to refuse unknown members.
func schema(t testing.TB) *outputschema.Schema {
	t.Helper()
	var doc any
	must.OK(t, json.Unmarshal(tools.New(engine.TurnFunc(nil), nil).List(false)[0].OutputSchema, &doc))
	closeObjects(doc)
	closed := must.Get(json.Marshal(doc))(t)
	return must.Get(outputschema.Compile(closed))(t)
}

func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["properties"].(map[string]any); ok {
			v["additionalProperties"] = false
		}
		for _, inner := range v {
			closeObjects(inner)
		}
	case []any:
		for _, inner := range v {
			closeObjects(inner)
		}
	}
}

// check checks that a report is strict JSON, has at most limit bytes, and matches the schema.
func check(t testing.TB, s *outputschema.Schema, out []byte, limit int) {
	t.Helper()
	if len(out) > limit {
		t.Errorf("%d bytes, more than %d", len(out), limit)
	}
	if !jsontext.Value(out).IsValid() {
		t.Fatalf("no JSON: %.300s", out)
	}
	if _, err := s.Check(string(out)); err != nil {
		t.Errorf("%v\n%.2000s", err, out)
	}
}

// TestShortSchemaNamesAll checks that the schema of codex-reply names the members of that of codex, and accepts the same
// reports.
func TestShortSchemaNamesAll(t *testing.T) {
	var objects [2]struct {
		Required   []string
		Properties map[string]struct{ Type string }
	}
	for i, one := range tools.New(engine.TurnFunc(nil), nil).List(false)[:2] {
		must.OK(t, json.Unmarshal(one.OutputSchema, &objects[i], json.MatchCaseInsensitiveNames(true)))
	}
	if diff := cmp.Diff(objects[0], objects[1]); diff != "" || len(objects[1].Properties) == 0 {
		t.Errorf("-whole +short:\n%s", diff)
	}
}

// TestSchemaOfAFailure checks the result of a call that fails before its turn. It has a text, and may have a thread.
func TestSchemaOfAFailure(t *testing.T) {
	check(t, schema(t), []byte(`{"threadId":"","content":"codex: argument /prompt is missing"}`), 100)
}
