package turn_test

import (
	"context"
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
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
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
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "somebody")
		t.Setenv("GIT_"+who+"_EMAIL", "somebody@example.com")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
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
	must.OK(tt.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.OK(tt.t, os.WriteFile(path, []byte(text), 0o644))
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

// run runs a command.
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
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%q: %s, want %s", name, s, want)
		}
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
		{"switched off", t.Context(), dir, changes.Options{Scratch: scratch, Changes: setting.Changes{Off: true}}, true, false},
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
		if words := w.c.Found().Untold; (words != "") != tt.untold {
			t.Errorf("%s: %q", tt.name, words)
		}
	}
}
