//go:build unix

package tools_test

import (
	"context"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/google/go-cmp/cmp"
)

// TestWorktrees runs five threads at once, each in a worktree of its own. Results have its folder and
// its branch as text and as data, also at the beginning of a turn in the background.
func TestWorktrees(t *testing.T) {
	w := newWorkshop(t)
	c := w.connect(codexserver.CallOptions{})
	trees := filepath.Join(w.home, "codex-mcp-worktrees")
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			background := i%2 == 1
			var s struct {
				started
				Worktree struct{ Path, Branch string }
			}
			use(t, c, "codex", fmt.Sprintf(`{"prompt":"shared %d","cwd":%q,"worktree":true,"background":%t}`, i, filepath.Join(w.repo, "sub"), background), &s)
			if background {
				s.Content = strings.Join(use(t, c, "codex-wait", map[string]any{"threadIds": []string{s.ThreadID}}, nil).texts(), "\n")
			}
			path, branch := s.Worktree.Path, s.Worktree.Branch
			if filepath.Dir(path) != trees || branch != "codex/"+filepath.Base(path) || !strings.Contains(s.Content, "the git worktree "+path+", on the new branch "+branch) {
				t.Errorf("thread %d: %+v", i, s)
			}
			must.Equal(t, fmt.Sprintf("thread %d works in", i), filepath.Join(path, "sub"), w.engine.config(s.ThreadID).Cwd)
			if got, err := os.ReadFile(filepath.Join(path, "sub", "shared")); err != nil || string(got) != fmt.Sprintf("%d\n", i) {
				t.Errorf("worktree %d has %q, %v", i, got, err)
			}
		})
	}
	all.Wait()
	must.Equal(t, "the repository has changed", "", w.git("status", "--porcelain"))
	if branches := strings.Fields(w.git("branch", "--list", "--format=%(refname:short)", "codex/*")); len(branches) != 5 {
		t.Errorf("the branches are %q", branches)
	}
}

// TestWorktreeRefused checks that a call which can have no worktree says why, and leaves none.
func TestWorktreeRefused(t *testing.T) {
	w := newWorkshop(t)
	c := w.connect(codexserver.CallOptions{})
	bare := servertest.Connect(t, codexserver.New(w.engine, nil), nil)
	none, file := filepath.Join(w.repo, "none"), filepath.Join(w.repo, "shared")
	for _, tt := range []struct {
		client    *servertest.Client
		arguments map[string]any
		want      string
	}{
		{bare, map[string]any{}, "codex: argument /worktree: this server keeps no files"},
		{c, map[string]any{"cwd": filepath.Dir(w.repo)}, "codex: argument /worktree: " + filepath.Dir(w.repo) + " is not in the working tree of a git repository"},
		{c, map[string]any{"cwd": none}, "codex: argument /cwd: " + none + " does not exist"},
		{c, map[string]any{"cwd": file}, "codex: argument /cwd: " + file + " is not a folder"},
		{c, map[string]any{"cwd": w.repo, "profile": "nosuch"}, "no profile nosuch"},
		{c, map[string]any{"cwd": w.repo, "uncommitted": true}, "unknown argument /uncommitted"},
	} {
		tt.arguments["prompt"], tt.arguments["worktree"] = "new file", true
		r, err := tt.client.Tool(t.Context(), "codex", tt.arguments)
		if err != nil || !r.IsError || !strings.Contains(r.Content, tt.want) {
			t.Errorf("%v: %+v, %v", tt.arguments, r, err)
		}
	}
	r, err := c.Tool(t.Context(), "codex-review", map[string]any{"target": "uncommitted", "cwd": none})
	if err != nil || !r.IsError || !strings.Contains(r.Content, "argument /cwd: "+none+" does not exist") {
		t.Errorf("codex-review: %+v, %v", r, err)
	}
	if left, err := os.ReadDir(filepath.Join(w.home, "codex-mcp-worktrees")); err != nil && !errors.Is(err, os.ErrNotExist) || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	must.Equal(t, "left", "", w.git("branch", "--list", "codex/*"))
}

// TestWorktreeRoom refuses a worktree while all take more than they may, and names what to remove.
func TestWorktreeRoom(t *testing.T) {
	w := newWorkshop(t)
	start := func(limit int64) servertest.Result {
		t.Helper()
		c := w.connect(codexserver.CallOptions{WorktreeBytes: limit})
		return must.Get(c.Tool(t.Context(), "codex", map[string]any{"prompt": "shared one", "cwd": w.repo, "worktree": true}))(t)
	}
	if r := start(1); r.IsError { // there is none yet
		t.Fatalf("%+v", r)
	}
	trees := filepath.Join(w.home, "codex-mcp-worktrees")
	tree := must.Get(filepath.Glob(filepath.Join(trees, "????????")))(t)[0]
	must.OK(t, os.WriteFile(filepath.Join(tree, "large"), make([]byte, 3_000_000), 0o600))
	if r := start(4_000_000); r.IsError {
		t.Errorf("%+v", r)
	}
	r := start(2_000_000)
	line := "git -C " + w.repo + " worktree remove " + tree
	for _, part := range []string{
		"argument /worktree: all worktrees take 3.", " MB, more than limits.worktrees, which is 2.0 MB. The largest: " + tree + " (3.", line,
	} {
		if !r.IsError || !strings.Contains(r.Content, part) {
			t.Errorf("it says %q, want %q", r.Content, part)
		}
	}
	if left := must.Get(filepath.Glob(filepath.Join(trees, "????????")))(t); len(left) != 2 {
		t.Errorf("there are %q", left)
	}
	must.OK(t, os.Remove(filepath.Join(tree, "large")))
	w.git("worktree", "remove", "--force", tree)
	if r := start(2_000_000); r.IsError {
		t.Errorf("%+v", r)
	}
}

// TestWorktreeInFolders continues conversations in worktrees, on a server that limits the folders of
// calls. Those of repositories elsewhere, which another server made, are refused.
func TestWorktreeInFolders(t *testing.T) {
	w := newWorkshop(t)
	r, err := w.connect(codexserver.CallOptions{}).Tool(t.Context(), "codex", map[string]any{"prompt": "first one", "cwd": w.repo, "worktree": true})
	if err != nil || r.IsError {
		t.Fatalf("%+v, %v", r, err)
	}
	for folder, want := range map[string]string{w.repo: "wrote second", t.TempDir(): "argument /threadId: its folder: " + w.repo + "/.git does not lie in one of the folders"} {
		c := w.connect(codexserver.CallOptions{Folders: []string{folder}})
		r, err := c.Tool(t.Context(), "codex-reply", map[string]any{"threadId": r.Thread, "prompt": "second two"})
		if err != nil || !strings.Contains(r.Content, want) {
			t.Errorf("%+v, %v; want %s", r, err, want)
		}
	}
	cwd := w.engine.config(r.Thread).Cwd
	if got, err := os.ReadFile(filepath.Join(cwd, "second")); err != nil || cmp.Diff("two\n", string(got)) != "" {
		t.Errorf("the second turn wrote %q, %v", got, err)
	}
}

// shop is a server with the native engine, whose model runs the commands of a script.
type shop struct {
	t         *testing.T
	server    *codexserver.Server
	home, dir string
}

func newShop(t *testing.T, turns ...providertest.Turn) *shop {
	t.Helper()
	w := newWorkshop(t)
	e := newNative(t, w.home, providertest.New(turns...))
	return &shop{t: t, server: codexserver.New(e, &codexserver.Options{Home: w.home}), home: w.home, dir: w.repo}
}

// connect connects a client of an era.
func (s *shop) connect(era servertest.Era) *servertest.Client {
	s.t.Helper()
	return servertest.Join(s.t, s.server, servertest.Host{Era: era})
}

// TestShow reads what a thread has, and checks the errors for what it has not, in both eras.
func TestShow(t *testing.T) {
	for _, era := range eras {
		t.Run(string(era), func(t *testing.T) {
			s := newShop(t,
				providertest.Call(providertest.Shell("1", "sh", "-c", "echo new > made; echo out; echo err >&2")), providertest.Say("made it"),
				providertest.Call(providertest.Shell("1", "rm", "made")), providertest.Say("took it away"))
			c := s.connect(era)
			var r started
			use(t, c, "codex", map[string]any{"prompt": "make", "cwd": s.dir}, &r)
			id := r.ThreadID
			var second struct{ Commands []struct{ ID int } }
			if use(t, c, "codex-reply", map[string]any{"prompt": "unmake", "threadId": id}, &second); len(second.Commands) != 1 || second.Commands[0].ID != 2 {
				t.Errorf("%+v", second)
			}
			diff, _ := show(t, c, map[string]any{"threadId": id, "what": "diff"})
			var lines []string
			for line := range strings.Lines(diff) {
				if !strings.HasPrefix(line, "index ") {
					lines = append(lines, line)
				}
			}
			want := "# turn 1\ndiff --git a/made b/made\nnew file mode 100644\n--- /dev/null\n+++ b/made\n@@ -0,0 +1 @@\n+new\n" +
				"# turn 2\ndiff --git a/made b/made\ndeleted file mode 100644\n--- a/made\n+++ /dev/null\n@@ -1 +0,0 @@\n-new\n"
			if d := cmp.Diff(want, strings.Join(lines, "")); d != "" {
				t.Error("(-want +got)\n" + d)
			}
			if got, _ := show(t, c, map[string]any{"threadId": id, "what": "output", "command": 1}); got != "out\nerr\n" && got != "err\nout\n" {
				t.Errorf("output %q", got)
			}
			if _, p := show(t, c, map[string]any{"threadId": id, "what": "output"}); p.Command != 2 || p.Note != "The command has printed nothing." {
				t.Errorf("%+v", p)
			}

			unknown := "019aa1f8-0000-7000-8000-000000000000"
			for words, arguments := range map[string]map[string]any{
				"argument /threadId is missing":                                         {"what": "diff"},
				`argument /what is missing: want one of "diff", "transcript", "output"`: {"threadId": id},
				"argument /what: value must be one of":                                  {"threadId": id, "what": "all"},
				"argument /offset: want 0 or more":                                      {"threadId": id, "what": "diff", "offset": -1},
				"argument /offset: got string, want integer":                            {"threadId": id, "what": "diff", "offset": "one"},
				"argument /offset: 100000 is not in the text":                           {"threadId": id, "what": "transcript", "offset": 100_000},
				"argument /command is for what: output":                                 {"threadId": id, "what": "diff", "command": 1},
				"argument /command: want 1 or more":                                     {"threadId": id, "what": "output", "command": 0},
				"argument /command: 3 is not one of the 2":                              {"threadId": id, "what": "output", "command": 3},
				fmt.Sprintf("codex-show: no conversation %q", unknown):                  {"threadId": unknown, "what": "diff"},
			} {
				if r := use(t, c, "codex-show", arguments, nil); !r.IsError || !strings.Contains(r.Content[0].Text, words) {
					t.Errorf("%v: %q, want %q", arguments, r.texts(), words)
				}
			}

			// While another client holds the thread, it is unknown to this one.
			other := s.connect(era)
			for _, what := range []string{"diff", "transcript", "output"} {
				p := use(t, other, "codex-show", map[string]any{"threadId": id, "what": what}, nil)
				q := use(t, other, "codex-show", map[string]any{"threadId": unknown, "what": what}, nil)
				if !p.IsError || strings.ReplaceAll(p.Content[0].Text, id, unknown) != q.Content[0].Text {
					t.Errorf("%s of another client's: %q, of nobody's %q", what, p.texts(), q.texts())
				}
			}

			// Once no process does, its rollout has the transcript.
			c.End()
			transcript, _ := show(t, other, map[string]any{"threadId": id, "what": "transcript"})
			if !strings.Contains(transcript, "user:\n  make\ncommand: sh -c ") || !strings.Contains(transcript, "codex:\n  took it away\n") {
				t.Errorf("%s", transcript)
			}
			if n := strings.Count(transcript, "user:\n"); n != 2 {
				t.Errorf("%d messages of the user: %s", n, transcript)
			}
			for _, what := range []string{"diff", "output"} {
				if r := use(t, other, "codex-show", map[string]any{"threadId": id, "what": what}, nil); !r.IsError || !strings.Contains(r.Content[0].Text, "only the transcript can be read") {
					t.Errorf("%s: %q", what, r.texts())
				}
			}
			if left, err := filepath.Glob(filepath.Join(s.home, "tmp", "*")); err != nil || len(left) > 0 {
				t.Errorf("left: %q, %v", left, err)
			}
		})
	}
}

// TestShowOfAMessage reads the diff of turns that methods of September 2025 started, in the folder of each turn.
func TestShowOfAMessage(t *testing.T) {
	s := newShop(t,
		providertest.Call(providertest.Shell("1", "sh", "-c", "echo new > made")), providertest.Say("made it"),
		providertest.Call(providertest.Shell("1", "sh", "-c", "echo new > elsewhere")), providertest.Say("made it"),
		providertest.Call(providertest.Shell("1", "rm", "elsewhere")), providertest.Say("took it away"))
	c := s.connect(servertest.Handshake)
	var r struct {
		ConversationID string `json:"conversationId"`
	}
	must.OK(t, c.Call(t.Context(), "newConversation", map[string]any{"cwd": s.dir}, &r))
	items := []any{map[string]any{"type": "text", "data": map[string]any{"text": "make"}}}
	soon, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for i, want := range []string{"+++ b/made\n", "+++ b/elsewhere\n", "--- a/elsewhere\n"} {
		must.OK(t, c.Call(t.Context(), "sendUserMessage", map[string]any{"conversationId": r.ConversationID, "items": items}, nil))
		diff, heading := "", fmt.Sprintf("# turn %d\n", i+1)
		for !strings.Contains(diff, heading) { // the diff comes soon after the turn, and no event says so
			if diff, _ = show(t, c, map[string]any{"threadId": r.ConversationID, "what": "diff"}); soon.Err() != nil {
				t.Fatalf("turn %d: no diff: %q", i+1, diff)
			}
		}
		if _, diff, _ = strings.Cut(diff, heading); !strings.Contains(diff, want) {
			t.Errorf("turn %d: the diff is %q, want %q in it", i+1, diff, want)
		}
	}
}

// TestShowOfAWorktree shows what a conversation changed in its worktree. The repository's
// configuration names programs, which must not run.
func TestShowOfAWorktree(t *testing.T) {
	s := newShop(t, providertest.Call(providertest.Shell("1", "sh", "-c", "echo theirs > shared; echo x > filtered")), providertest.Say("done"))
	ran := filepath.Join(t.TempDir(), "ran")
	configure(t, s.dir, "touch '"+ran+"'; cat", "core.fsmonitor", "filter.evil.clean", "diff.external", "diff.evil.textconv", "diff.evil.command")
	info := filepath.Join(s.dir, ".git", "info")
	must.OK(t, os.MkdirAll(info, 0o700), os.WriteFile(filepath.Join(info, "attributes"), []byte("shared diff=evil\nfiltered filter=evil\n"), 0o600))
	c := s.connect(servertest.Handshake)
	var r started
	use(t, c, "codex", map[string]any{"prompt": "p", "cwd": s.dir, "worktree": true}, &r)
	diff, _ := show(t, c, map[string]any{"threadId": r.ThreadID, "what": "diff"})
	if !strings.Contains(diff, "+++ b/shared\n@@ -1 +1 @@\n-base\n+theirs\n") || !strings.Contains(diff, "add filtered\n") {
		t.Errorf("%s", diff)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("something of the repository ran")
	}
}
