//go:build realcodex

package appserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// nested has a repository, a folder in it, and a home beside it that no command may write.
type nested struct {
	repo, sub, home, codex string
	lines                  map[string][]string // the commands of a turn, by its prompt
	wait                   int                 // how long Codex waits for a command before it goes on, in milliseconds
}

func newNested(t *testing.T) *nested {
	t.Helper()
	boxtest.Need(t)
	t.Setenv("HOME", userHome) // folders outside of the sandbox lie there, and not below one for temporary files
	top := boxtest.Outside(t)
	boxtest.Lay(t, top, "repo/sub/", "home/")
	t.Setenv("HOME", filepath.Join(top, "home"))
	n := &nested{repo: filepath.Join(top, "repo"), sub: filepath.Join(top, "repo", "sub"), home: filepath.Join(top, "home"), codex: t.TempDir(), lines: map[string][]string{}, wait: 20000}
	model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		lines, done := n.lines[r.LastUserText()], len(r.ToolOutputs())
		if done >= len(lines) {
			return providertest.Say("done")
		}
		return providertest.Call(providertest.Tool(fmt.Sprint("c", done), "exec_command", map[string]any{"cmd": lines[done], "yield_time_ms": n.wait}))
	}})
	t.Cleanup(model.Close)
	writeFile(t, filepath.Join(n.codex, "config.toml"), servertest.CodexConfig(model.BaseURL(), "approval_policy = \"never\""))
	return n
}

// join starts a server in the repository, with a client that answers so.
func (n *nested) join(t *testing.T, says servertest.Answer) *servertest.Client {
	t.Helper()
	e := must.Get(appserver.New(&appserver.Options{CodexHome: n.codex}))(t)
	t.Cleanup(func() { e.Close() })
	return servertest.Connect(t, codexserver.New(e, &codexserver.Options{Folder: n.repo, Home: n.codex}), says)
}

// call runs a turn in a folder in which commands may write.
func (n *nested) call(ctx context.Context, c *servertest.Client, prompt, cwd string) (servertest.Result, error) {
	return c.Tool(ctx, "codex", map[string]any{"prompt": prompt, "cwd": cwd, "sandbox": "workspace-write"})
}

// written reports whether a command has written into the home.
func (n *nested) written() bool {
	_, err := os.Stat(filepath.Join(n.home, "rc"))
	return err == nil
}

// asked returns the questions that a client was asked.
func asked(c *servertest.Client) (all []string) {
	for _, params := range c.Received("elicitation/create") {
		var p struct{ Message string }
		_ = json.Unmarshal(params, &p) // "" shows in the test
		all = append(all, p.Message)
	}
	return all
}

// awaits returns a command that waits for a file, for some seconds.
func awaits(file string) string {
	return "for i in $(seq 200); do [ -e " + file + " ] && break; sleep 0.02; done"
}

// await waits for the file that a turn makes.
func await(t *testing.T, file string, done <-chan servertest.Result) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
		select {
		case got := <-done:
			t.Fatalf("the turn has ended: %s", got.Content)
		default:
		}
	}
	t.Fatalf("%s does not come", file)
}

// TestRealNestedFolders has a turn in a repository put a link in the place of a folder in it, where another turn works, which
// then writes where the link leads.
func TestRealNestedFolders(t *testing.T) {
	for _, two := range []bool{false, true} {
		for _, below := range []bool{true, false} { // which one begins first
			t.Run(fmt.Sprintf("two servers %t, the inner first %t", two, below), func(t *testing.T) {
				n := newNested(t)
				moved := filepath.Join(n.repo, "moved")
				n.lines["write"] = []string{"touch began; " + awaits(moved), "echo pwned > rc"}
				n.lines["move"] = []string{"touch began; " + awaits("sub/began"), "mv sub old; ln -s " + n.home + " sub; touch moved"}
				first, second, firstIn, secondIn := "write", "move", n.sub, n.repo
				if !below {
					first, second, firstIn, secondIn = second, first, secondIn, firstIn
				}
				declines := servertest.After(2*approve.Instant, servertest.Decline)
				c := n.join(t, declines)
				other := c
				if two {
					other = n.join(t, declines)
				}
				done := make(chan servertest.Result, 1)
				go func() {
					got, err := n.call(t.Context(), c, first, firstIn)
					if err != nil {
						t.Error(err)
					}
					done <- got
				}()
				await(t, filepath.Join(firstIn, "began"), done)
				got, err := n.call(t.Context(), other, second, secondIn)
				must.OK(t, err)
				for _, file := range []string{moved, filepath.Join(n.sub, "began")} { // for which the first one waits
					writeFile(t, file, "")
				}
				t.Logf("%s\n%s", (<-done).Content, got.Content)
				if n.written() {
					t.Error("a command wrote outside of its sandbox")
				}
				if q := asked(other); len(q) != 1 || !strings.Contains(q[0], n.repo+"`") || !strings.Contains(q[0], n.sub+"`") || !strings.Contains(q[0], "worktree") {
					t.Errorf("asked %q", q)
				}
			})
		}
	}
}

// TestRealLeftCommand has a turn leave a command running, which counts until it ends.
func TestRealLeftCommand(t *testing.T) {
	n := newNested(t)
	n.wait = 300
	n.lines["leave"] = []string{"until [ -e stop ]; do sleep 0.02; done"}
	c := n.join(t, servertest.After(2*approve.Instant, servertest.Decline))
	must.Get(n.call(t.Context(), c, "leave", n.sub))(t)
	notes := func() int { return len(must.Get(os.ReadDir(filepath.Join(n.codex, "codex-mcp", "turns")))(t)) }
	must.Equal(t, "notes", 1, notes())
	must.Get(n.call(t.Context(), c, "go", n.repo))(t)
	must.Equal(t, "questions while it runs", 1, len(asked(c)))
	writeFile(t, filepath.Join(n.sub, "stop"), "")
	for end := time.Now().Add(30 * time.Second); notes() > 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
	}
	must.Get(n.call(t.Context(), c, "go", n.repo))(t)
	must.Equal(t, "questions when it has ended", 1, len(asked(c)))
	must.Equal(t, "notes at the end", 0, notes())
}

// TestRealSwappedFolder puts a link in the place of a turn's folder at each moment. Each command is asked about and allowed, and
// none writes where the link leads, but where the question had named it.
func TestRealSwappedFolder(t *testing.T) {
	moments := []string{"the folder is asked about", "a command runs", "the model thinks", "a command is asked about", "before the call", "never"}
	for _, when := range moments[:nightly.Number(2, len(moments))] {
		t.Run(when, func(t *testing.T) {
			n := newNested(t)
			other := filepath.Join(filepath.Dir(n.repo), "other")
			must.OK(t, os.Mkdir(other, 0o755))
			var requests, questions atomic.Int64
			at := func(moment string) {
				if moment == when {
					must.OK(t, os.Rename(other, other+"2"), os.Symlink(n.home, other))
				}
			}
			model := providertest.New(providertest.Turn{Repeat: true, Func: func(providertest.Request) providertest.Turn {
				switch requests.Add(1) {
				case 1:
					at("the model thinks")
					return providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": "touch began; sleep 1; true > rc", "yield_time_ms": 300}))
				case 2:
					at("a command runs")
					return providertest.Call(providertest.Tool("c2", "exec_command", map[string]any{"cmd": "echo pwned > rc", "yield_time_ms": n.wait}))
				}
				return providertest.Say("done")
			}})
			t.Cleanup(model.Close)
			writeFile(t, filepath.Join(n.codex, "config.toml"), servertest.CodexConfig(model.BaseURL(), "approval_policy = \"untrusted\""))
			c := n.join(t, func(ctx context.Context) (string, error) {
				if questions.Add(1) == 1 {
					at("the folder is asked about")
				} else {
					at("a command is asked about")
				}
				return servertest.After(2*approve.Instant, servertest.Accept)(ctx)
			})
			at("before the call")
			got, err := n.call(t.Context(), c, "go", other)
			t.Logf("%d requests, %d questions, %v\n%s", requests.Load(), questions.Load(), err, got.Content)
			if first := asked(c); len(first) == 0 || !strings.Contains(first[0], other+"`") && !strings.Contains(first[0], n.home+"`") {
				t.Fatalf("asked %q", first)
			}
			named := strings.Contains(asked(c)[0], n.home+"`")
			if n.written() != named || named != (when == "before the call") {
				t.Errorf("written %t, named %t", n.written(), named)
			}
			if when != "never" && when != "before the call" && !strings.Contains(got.Content, other) {
				t.Errorf("the client is not told: %s", got.Content)
			}
		})
	}
}
