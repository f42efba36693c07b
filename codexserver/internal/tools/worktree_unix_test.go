//go:build unix

package tools_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
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
			if cwd := w.engine.config(s.ThreadID).Cwd; cwd != filepath.Join(path, "sub") {
				t.Errorf("thread %d works in %s", i, cwd)
			}
			if got, err := os.ReadFile(filepath.Join(path, "sub", "shared")); err != nil || string(got) != fmt.Sprintf("%d\n", i) {
				t.Errorf("worktree %d has %q, %v", i, got, err)
			}
		})
	}
	all.Wait()
	if status := w.git("status", "--porcelain"); status != "" {
		t.Errorf("the repository has changed: %s", status)
	}
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
	if branches := w.git("branch", "--list", "codex/*"); branches != "" {
		t.Errorf("left: %s", branches)
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
