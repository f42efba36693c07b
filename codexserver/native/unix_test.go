//go:build unix

package native_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestManyConversations runs 150 conversations at once in a process with at most 128 descriptors. A third of as many
// are in a turn before the model answers the first. All are answered, and afterwards they hold no descriptors.
func TestManyConversations(t *testing.T) {
	t.Parallel()
	const child = "NATIVE_TEST_MANY"
	const n = 150 // more than descriptors
	if home := os.Getenv(child); home != "" {
		runMany(t, home, n)
		return
	}
	answer := make(chan struct{})
	turns := make([]providertest.Turn, 2*n)
	for i := range turns {
		turns[i] = providertest.Say("hello")
		turns[i].Wait = answer
	}
	b := setup(t, "", native.Limits{}, turns...)
	cmd := exec.Command(os.Args[0], "-test.run=^TestManyConversations$", "-test.v")
	cmd.Env = append(os.Environ(), child+"="+b.home)
	out := must.Get(cmd.StdoutPipe())(t)
	cmd.Stderr = cmd.Stdout
	must.OK(t, cmd.Start())
	var said strings.Builder
	begun := false
	for lines := bufio.NewScanner(io.TeeReader(out, &said)); lines.Scan(); {
		if lines.Text() == "as many as may have begun" {
			begun = true
			close(answer)
		}
	}
	if !begun {
		close(answer)
	}
	if err := cmd.Wait(); err != nil || !begun || !strings.Contains(said.String(), "--- PASS") {
		t.Errorf("%v\n%.4000s", err, said.String())
	}
}

func runMany(t *testing.T, home string, n int) {
	few := syscall.Rlimit{Cur: 128, Max: 128}
	must.OK(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	e := open(t, native.Options{CodexHome: home, Environ: []string{"HOME=" + home}})
	var begun atomic.Int32
	begins := func() { // or fails, so that the others need not wait
		if uint64(begun.Add(1)) == few.Cur/3 {
			fmt.Println("as many as may have begun")
		}
	}
	count := func(m protocol.EventMsg) { // see below
		if _, ok := m.(protocol.BackgroundEvent); ok {
			begins()
		}
	}
	var all sync.WaitGroup
	var answered atomic.Int32
	for range n {
		all.Go(func() {
			h := &host{on: count}
			c, err := e.Start(t.Context(), protocol.Config{Cwd: home}, h)
			if err != nil {
				t.Error(err)
				begins()
				return
			}
			t.Cleanup(func() { closed(t, c) })
			// The turn says so in an event, once it has its rollout.
			appendTo(t, configured(t, h).RolloutPath, "{}\n")
			if err := c.Turn(t.Context(), say("hi")); err != nil {
				t.Error(err)
				begins()
				return
			}
			answered.Add(1)
		})
	}
	all.Wait()
	must.Equal(t, "answered", n, int(answered.Load()))
	if open, err := filepath.Glob("/proc/self/fd/*"); err != nil || len(open) > 100 {
		t.Errorf("%d descriptors are open, %v", len(open), err)
	}
	rollouts, err := filepath.Glob(filepath.Join(home, "sessions", "*", "*", "*", "*.jsonl"))
	if err != nil || len(rollouts) != n {
		t.Errorf("%d rollouts, %v", len(rollouts), err)
	}
	for _, path := range rollouts {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "hello") {
			t.Errorf("%s lacks the answer: %v", path, err)
		}
	}
}

func symlink(t testing.TB, to, path string) {
	t.Helper()
	must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.OK(t, os.Symlink(to, path))
}

func mkfifo(t testing.TB, path string) {
	t.Helper()
	must.OK(t, syscall.Mkfifo(path, 0o600))
}

// TestInstructionsStayInTheRepository makes AGENTS.md of a repository a link. It is followed only within the
// repository: otherwise it could send a file of the user to the provider. The user's own may be a link to any file,
// unless it is in the workspace. If the user's home is a repository, links in it do not reach all of it.
func TestInstructionsStayInTheRepository(t *testing.T) {
	t.Parallel()
	elsewhere := filepath.Join(t.TempDir(), "rules.md")
	for _, tt := range []struct {
		name string
		lay  func(b *bench, doc string)
		want string // in the instructions; "" when there are none
	}{
		{"a file", func(b *bench, doc string) { write(t, doc, "a rule") }, "a rule"},
		{"a link within", func(b *bench, doc string) {
			write(t, filepath.Join(b.cwd, "docs", "rules.md"), "a rule")
			symlink(t, "docs/rules.md", doc)
		}, "a rule"},
		{"an absolute link within", func(b *bench, doc string) {
			write(t, filepath.Join(b.cwd, "docs", "rules.md"), "a rule")
			symlink(t, filepath.Join(b.cwd, "docs", "rules.md"), doc)
		}, "a rule"},
		{"a link to auth.json", func(b *bench, doc string) { symlink(t, filepath.Join(b.home, "auth.json"), doc) }, ""},
		{"a link by way of a folder", func(b *bench, doc string) {
			symlink(t, b.home, filepath.Join(b.cwd, "home"))
			symlink(t, "home/auth.json", doc)
		}, ""},
		{"a link into git's folder", func(b *bench, doc string) {
			write(t, filepath.Join(b.cwd, ".git", "config"), "url = https://secret@example.com")
			symlink(t, ".git/config", doc)
		}, ""},
		{"its name in capitals", func(b *bench, doc string) { // the same folder where case does not count
			write(t, filepath.Join(b.cwd, ".GIT", "config"), "url = https://secret@example.com")
			symlink(t, ".GIT/config", doc)
		}, ""},
		{"a link to a device", func(b *bench, doc string) { symlink(t, "/dev/zero", doc) }, ""},
		{"a named pipe", func(_ *bench, doc string) { mkfifo(t, doc) }, ""},
		{"a link to itself", func(b *bench, doc string) { symlink(t, "AGENTS.md", doc) }, ""},
		{"a folder", func(b *bench, doc string) { write(t, filepath.Join(doc, "x"), "x") }, ""},
		{"a link of the user's", func(b *bench, _ string) {
			write(t, elsewhere, "a rule")
			symlink(t, elsewhere, filepath.Join(b.home, "AGENTS.md"))
		}, "a rule"},
		{"the user's, within the workspace", func(b *bench, _ string) {
			b.cwd = b.home
			repository(t, b.home)
			write(t, elsewhere, "secret")
			symlink(t, elsewhere, filepath.Join(b.home, "AGENTS.md"))
		}, ""},
		{"a home that is a repository", func(b *bench, _ string) {
			repository(t, b.home)
			write(t, filepath.Join(b.home, ".ssh", "key"), "secret")
			b.cwd = filepath.Join(b.home, "project")
			symlink(t, "../.ssh/key", filepath.Join(b.cwd, "AGENTS.md"))
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, "", native.Limits{}, providertest.Say("ok"))
			repository(t, b.cwd)
			write(t, filepath.Join(b.home, "auth.json"), `{"OPENAI_API_KEY": "secret"}`)
			tt.lay(b, filepath.Join(b.cwd, "AGENTS.md"))
			h := &host{}
			turn(t, b.start(t, h, protocol.Config{}), say("hi"))
			warnings := h.news()
			body := lastRequest(b)
			without(t, body, "secret")
			if got := strings.Contains(body, "<user_instructions>"); got != (tt.want != "") || !strings.Contains(body, tt.want) {
				t.Errorf("instructions: %t, want %q", got, tt.want)
			}
			want := 1
			if b.cwd == b.home { // the user's own file, and the repository's
				want = 2
			}
			if tt.want == "" && (len(warnings) != want || !strings.Contains(warnings[0], filepath.Join(b.cwd, "AGENTS.md")+" is left out: ")) {
				t.Errorf("warnings %q", warnings)
			}
		})
	}
}

// TestInstructionsFileIsAFile checks that the error for a faulty file names its key.
func TestInstructionsFileIsAFile(t *testing.T) {
	for name, lay := range map[string]func(b *bench, path string){
		"device":   func(_ *bench, path string) { symlink(t, "/dev/zero", path) },
		"pipe":     func(_ *bench, path string) { mkfifo(t, path) },
		"link out": func(b *bench, path string) { symlink(t, filepath.Join(b.home, "config.toml"), path) },
		"too long": func(_ *bench, path string) { write(t, path, strings.Repeat("x", 1<<20+1)) },
		"missing":  func(*bench, string) {},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, `experimental_instructions_file = "base.md"`, native.Limits{})
			lay(b, filepath.Join(b.cwd, "base.md"))
			_, err := b.engine.Start(t.Context(), protocol.Config{Cwd: b.cwd}, &host{})
			if err == nil || !strings.Contains(err.Error(), "model_instructions_file: ") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// ruled is a host with a rule that lets every command run outside the sandbox, with some variables.
type ruled struct {
	*host
	environ []string
}

func (r ruled) Ask(context.Context, approval.Subject) elicit.Outcome {
	return elicit.Outcome{Decision: elicit.Approved, Ruled: true, Environ: r.environ}
}

// TestRuledEnviron has what a command gets by a rule that names variables: no key of a model provider.
func TestRuledEnviron(t *testing.T) {
	names := []string{"P_KEY", "Q_KEY", "OPENAI_API_KEY", "CODEX_ACCESS_TOKEN", "GH_TOKEN", "TZ", "MAKEFLAGS"}
	b := setup(t, "shell_environment_policy = {exclude = [\"TZ\", \"LANG\"], set = {GIVEN = \"g\"}}\n---\nenv_key = \"P_KEY\"\n[model_providers.other]\nbase_url = \"http://127.0.0.1:1/\"\nenv_http_headers = {x = \"Q_KEY\"}\n",
		native.Limits{}, providertest.Call(providertest.Shell("c", "env")), providertest.Say("done"))
	environ := []string{"PATH=/usr/bin:/bin", "HOME=" + b.home, "MAKEFILES=x", "LANG=C", "TERM=x"}
	for _, name := range names {
		environ = append(environ, name+"=of")
	}
	b.engine = open(t, native.Options{CodexHome: b.home, Environ: environ})
	turn(t, b.start(t, ruled{&host{}, names}, protocol.Config{}), say("go"))
	answer := string(b.provider.Requests()[1].Body)
	for _, name := range append(names, "GIVEN", "MAKEFILES", "LANG", "TERM") {
		want := slices.Contains([]string{"GH_TOKEN", "TZ", "MAKEFLAGS", "GIVEN", "TERM"}, name)
		must.Equal(t, name, want, strings.Contains(answer, name+"="))
	}
}
