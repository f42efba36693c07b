package tools_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// scribe is an engine whose turns write files: a prompt "NAME CONTENT" writes one
// in the working folder. Its conversations outlive it.
type scribe struct{ *servertest.Engine }

func newScribe() *scribe {
	s := &scribe{Engine: &servertest.Engine{}}
	s.Turn = func(ctx context.Context, h engine.Host, in []protocol.InputItem) error {
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
}

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for name, value := range map[string]string{
		"HOME": filepath.Join(top, "user"), "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "somebody", "GIT_AUTHOR_EMAIL": "somebody@example.com",
		"GIT_COMMITTER_NAME": "somebody", "GIT_COMMITTER_EMAIL": "somebody@example.com",
	} {
		t.Setenv(name, value)
	}
	w := &workshop{t: t, repo: filepath.Join(top, "repo"), home: filepath.Join(top, "home"), engine: newScribe()}
	files, err := committed()
	if err == nil {
		err = os.CopyFS(w.repo, files)
	}
	must(t, err)
	return w
}

// committed is a repository with a commit of one file, made once for all tests.
var committed = sync.OnceValues(func() (fs.FS, error) {
	return servertest.Repository(servertest.Commit{Branch: "main", Files: map[string]string{"shared": "base\n", "sub/x": "x\n"}})
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
	must(t, err)
}

func (w *workshop) git(args ...string) string {
	w.t.Helper()
	return servertest.Git(w.t, w.repo, args...)
}

func (w *workshop) connect(calls codexserver.CallOptions) *servertest.Client {
	w.t.Helper()
	return servertest.Connect(w.t, codexserver.New(w.engine, &codexserver.Options{Home: w.home, Calls: calls}), nil)
}
