package mcptool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// scribe is an engine whose turns write files: a prompt "NAME CONTENT" writes one
// in the working folder. Its conversations outlive it.
type scribe struct {
	*servertest.Engine
	hold chan struct{} // what a turn waits for; nil is nothing
}

func newScribe() *scribe {
	s := &scribe{Engine: &servertest.Engine{}}
	s.Turn = func(ctx context.Context, h engine.Host, in []protocol.InputItem) error {
		if s.hold != nil {
			<-s.hold
		}
		name, content, _ := strings.Cut(protocol.TextOf(in), " ")
		h.Emit(protocol.AgentMessage{Message: "wrote " + name})
		return os.WriteFile(filepath.Join(engine.ConfigOf(ctx).Cwd, name), []byte(content+"\n"), 0o644)
	}
	return s
}

// config returns the configuration that a conversation was started with.
func (s *scribe) config(id string) protocol.Config {
	for _, c := range s.Started() {
		if c.ID == id {
			return c.Config
		}
	}
	return protocol.Config{}
}

// workshop is a repository, with a server's home next to it.
type workshop struct {
	t          *testing.T
	repo, home string
	engine     *scribe
	accept     bool // what the client answers

	mu     sync.Mutex
	client *servertest.Client // the last
	seen   int                // questions
}

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"HOME": filepath.Join(top, "user"), "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "somebody", "GIT_AUTHOR_EMAIL": "somebody@example.com",
		"GIT_COMMITTER_NAME": "somebody", "GIT_COMMITTER_EMAIL": "somebody@example.com",
	} {
		t.Setenv(name, value)
	}
	w := &workshop{t: t, repo: filepath.Join(top, "repo"), home: filepath.Join(top, "home"), engine: newScribe(), accept: true}
	files, err := committed()
	if err == nil {
		err = os.CopyFS(w.repo, files)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// committed is a repository with a commit of one file, made once for all tests.
var committed = sync.OnceValues(func() (fs.FS, error) {
	return servertest.Repository(servertest.Commit{Branch: "main", Files: map[string]string{"shared": "base\n"}})
})

// configure sets settings of a repository to one value, which is a process for each with git config.
func configure(t *testing.T, dir, value string, keys ...string) {
	t.Helper()
	name := filepath.Join(dir, ".git", "config")
	text, err := os.ReadFile(name)
	for _, key := range keys {
		section, last, _ := strings.Cut(key, ".")
		if inner, rest, ok := strings.Cut(last, "."); ok {
			section, last = fmt.Sprintf("%s %q", section, inner), rest
		}
		text = fmt.Appendf(text, "[%s]\n\t%s = %q\n", section, last, value)
	}
	if err == nil {
		err = os.WriteFile(name, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (w *workshop) git(args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "git", args...)
	cmd.Dir = w.repo
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *workshop) write(name, content string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.repo, name), []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workshop) connect() *servertest.Client {
	w.t.Helper()
	c := servertest.Connect(w.t, codexserver.New(w.engine, &codexserver.Options{Home: w.home}), func(context.Context) (string, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.accept {
			return servertest.Accept, nil
		}
		return servertest.Decline, nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.client, w.seen = c, 0
	return c
}

// questions returns what the last client was asked since the last call.
func (w *workshop) questions() []json.RawMessage {
	asked := w.client.Received("elicitation/create")
	fresh := asked[w.seen:]
	w.seen = len(asked)
	return fresh
}

// begin starts a conversation in a worktree, whose first turn writes a file.
func (w *workshop) begin(c *servertest.Client, prompt string, more ...string) (id string, r servertest.Result) {
	w.t.Helper()
	arguments := map[string]any{"prompt": prompt, "cwd": w.repo, "worktree": true}
	for _, name := range more {
		arguments[name] = true
	}
	r, err := c.Tool(w.t.Context(), "codex", arguments)
	if err != nil || r.IsError {
		w.t.Fatalf("codex: %+v, %v", r, err)
	}
	return r.Thread, r
}

// act calls codex-worktree, whose result must contain a text.
func (w *workshop) act(c *servertest.Client, id, action string, failed bool, want string, more ...string) string {
	w.t.Helper()
	arguments := map[string]any{"threadId": id, "action": action}
	for i := 0; i+1 < len(more); i += 2 {
		arguments[more[i]] = more[i+1]
	}
	r, err := c.Tool(w.t.Context(), "codex-worktree", arguments)
	if err != nil || r.IsError != failed || !strings.Contains(r.Content, want) {
		w.t.Fatalf("%s: %+v, %v, want %q", action, r, err, want)
	}
	return r.Content
}

// tree returns the repository's files, without git's files about worktrees.
func (w *workshop) tree() map[string]string {
	w.t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(w.repo, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == filepath.Join(w.repo, ".git", "worktrees"):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		data, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, w.repo)] = string(data)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *workshop) same(what string, before map[string]string) {
	w.t.Helper()
	if diff := cmp.Diff(before, w.tree()); diff != "" {
		w.t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}
