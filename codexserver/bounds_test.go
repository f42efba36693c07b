package codexserver_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestFolders names paths in and outside of the folders that calls are bound to.
func TestFolders(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	own, second, other := filepath.Join(top, "own"), filepath.Join(top, "second"), filepath.Join(top, "own-other")
	for _, dir := range []string{own + "/sub", own + "/repository/.git", second, other + "/.git", other + "/inner"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{own + "/a.png", second + "/a.png", other + "/a.png"} {
		if err := os.WriteFile(file, []byte(png), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"out": other, "up": "..", "absent": other + "/absent", "out.png": other + "/a.png", "in": second, "in.png": second + "/a.png",
	} {
		if err := os.Symlink(to, filepath.Join(own, name)); err != nil {
			t.Fatal(err)
		}
	}
	e := &turnRecorder{answer: "done"}
	c := connect(t, e, &codexserver.Options{Folders: []string{own, second, other + "/inner"}, Home: filepath.Join(top, "home")}, nil)
	const outside = " does not lie in one of the folders"
	for _, tt := range []struct {
		name      string
		tool      string
		arguments map[string]any
		fault     string // "" when it is let
		cwd       string
	}{
		{"no cwd", "codex", map[string]any{}, "", own},
		{"a folder", "codex", map[string]any{"cwd": second}, "", second},
		{"below", "codex", map[string]any{"cwd": own + "/sub"}, "", own + "/sub"},
		{"a link to a folder", "codex", map[string]any{"cwd": own + "/in"}, "", second},
		{"another", "codex", map[string]any{"cwd": other}, "argument /cwd: " + other + outside, ""},
		{"the root", "codex", map[string]any{"cwd": "/"}, "argument /cwd: /" + outside, ""},
		{"above", "codex", map[string]any{"cwd": own + "/.."}, "argument /cwd: " + top + outside, ""},
		{"not there", "codex", map[string]any{"cwd": other + "/absent"}, "argument /cwd: " + other + "/absent" + outside, ""},
		{"a link out", "codex", map[string]any{"cwd": own + "/out"}, "argument /cwd: " + own + "/out" + outside, ""},
		{"a link up", "codex", map[string]any{"cwd": own + "/up"}, "argument /cwd: " + own + "/up" + outside, ""},
		{"a link to nothing", "codex", map[string]any{"cwd": own + "/absent"}, "argument /cwd: ", ""},
		{"an image", "codex", map[string]any{"images": []string{"a.png", second + "/a.png", "in.png"}}, "", own},
		{"another's image", "codex", map[string]any{"images": []string{"a.png", other + "/a.png"}}, "argument /images/1: " + other + "/a.png" + outside, ""},
		{"an image above", "codex", map[string]any{"images": []string{"../own-other/a.png"}}, "argument /images/0: ", ""},
		{"a link to an image", "codex", map[string]any{"images": []string{"out.png"}}, "argument /images/0: " + own + "/out.png" + outside, ""},
		{"a writable folder", "codex", map[string]any{"sandbox": "workspace-write", "writable-roots": []string{second}}, "", own},
		{"another's writable folder", "codex", map[string]any{"sandbox": "workspace-write", "writable-roots": []string{second, other}}, "argument /writable-roots/1: " + other + outside, ""},
		{"a link to a writable folder", "codex", map[string]any{"sandbox": "workspace-write", "writable-roots": []string{"out"}}, "argument /writable-roots/0: ", ""},
		{"a worktree of another's repository", "codex", map[string]any{"cwd": other + "/inner", "worktree": true}, "argument /cwd: its git repository: " + other + outside, ""},
		{"a review of another's repository", "codex-review", map[string]any{"cwd": other + "/inner", "target": "uncommitted"}, "argument /cwd: its git repository: " + other + outside, ""},
		{"a review elsewhere", "codex-review", map[string]any{"cwd": other, "target": "uncommitted"}, "argument /cwd: " + other + outside, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.tool == "codex" {
				tt.arguments["prompt"] = "p"
			}
			before := e.turns
			e.cfg = protocol.Config{}
			got, _, err := c.call(t.Context(), tt.tool, tt.arguments)
			if err != nil {
				t.Fatal(err)
			}
			if tt.fault == "" {
				if got.IsError || e.cfg.Cwd != tt.cwd {
					t.Errorf("got %+v, in %q", got, e.cfg.Cwd)
				}
				return
			}
			if !got.IsError || !strings.Contains(got.Content, tt.fault) || e.turns != before {
				t.Errorf("got %+v, want %s", got, tt.fault)
			}
		})
	}
}

// TestTurnsAtATime refuses the call that would begin one turn more than the options let.
func TestTurnsAtATime(t *testing.T) {
	end := make(chan struct{})
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		select {
		case <-end:
		case <-ctx.Done():
		}
		host.Emit(protocol.AgentMessage{Message: "done"})
		return nil
	})
	c := connect(t, e, &codexserver.Options{Turns: 2}, nil)
	var threads []string
	for range 2 {
		_, id, err := c.call(t.Context(), "codex", map[string]any{"prompt": "p", "background": true})
		if err != nil {
			t.Fatal(err)
		}
		threads = append(threads, id)
	}
	for tool, arguments := range map[string]map[string]any{
		"codex": {"prompt": "p"}, "codex-reply": {"prompt": "p", "threadId": threads[0]},
	} {
		got, _, err := c.call(t.Context(), tool, arguments)
		if want := tool + ": 2 turns are under way"; err != nil || !got.IsError || !strings.HasPrefix(got.Content, want) {
			t.Errorf("%s: %+v, %v; want %s", tool, got, err, want)
		}
	}
	close(end)
	if _, _, err := c.call(t.Context(), "codex-wait", map[string]any{"threadIds": threads, "for": "all"}); err != nil {
		t.Fatal(err)
	}
	// A call that begins no turn takes no place, and one that has ended has none.
	for range 5 {
		if got, _, err := c.call(t.Context(), "codex", map[string]any{"prompt": "p", "cwd": 1}); err != nil || !got.IsError {
			t.Errorf("a wrong call: %+v, %v", got, err)
		}
		if got, _, err := c.call(t.Context(), "codex", map[string]any{"prompt": "p"}); err != nil || got.IsError {
			t.Errorf("afterwards: %+v, %v", got, err)
		}
	}
}
