package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/gobuild"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// limit bounds every wait of these tests. Only a failing test reaches it: on a machine with other work zsh takes 20 s to start.
const limit = time.Minute

// programs is the folder of the program under test, and of the reports of its data races.
var programs string

// binary is the program under test, built once, with the race detector if the tests have it.
var binary = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(programs, "codex-mcp.exe") // a name that every system runs
	var flags []string
	if detects() {
		flags = []string{"-race"}
	}
	return bin, gobuild.Program(bin, ".", flags...)
})

// detects reports whether the tests have the race detector.
func detects() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// detector is the variable that makes the program write its data races next to it, where TestMain
// finds them, also those of a program that was killed. The path may have spaces.
func detector() string {
	return "GORACE=atexit_sleep_ms=0 log_path='" + filepath.Join(programs, "race") + "'"
}

// built returns the program under test.
func built(t *testing.T) string {
	t.Helper()
	bin := must.Get(binary())(t)
	return bin
}

func TestMain(m *testing.M) {
	box.Main()                         // so that package boxtest can try the sandbox
	_ = flag.Set("test.parallel", "5") // most of them wait
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	if programs, err = os.MkdirTemp("", "codex-mcp"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(programs)) }()
	code = memdir.Run(m)
	races, err := filepath.Glob(filepath.Join(programs, "race.*"))
	for _, path := range races {
		text, _ := os.ReadFile(path)
		err = errors.Join(err, fmt.Errorf("in the program:\n%s", text))
	}
	return code, err
}

// configOf is the format of a configuration, without a policy, for a provider's address.
const configOf = `model = "mock-model"
sandbox_mode = "danger-full-access"
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = %q
`

// usualConfig is a configuration whose commands are asked about, outside of a sandbox. $BASE_URL is the address of the model.
const usualConfig = `model = "mock-model"
approval_policy = "untrusted"
sandbox_mode = "danger-full-access"
model_provider = "mock_provider"
[model_providers.mock_provider]
name = "Mock provider for test"
base_url = "$BASE_URL"
wire_api = "chat"
request_max_retries = 0
stream_max_retries = 0
`

// launcher starts the program for a client, with arguments for its server.
type launcher func(t *testing.T, f folders, args ...string) *process

// process is one run of the program, with all its output.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.Closer
	calls  int // of tools, by call

	mu     sync.Mutex
	news   *sync.Cond
	said   []map[string]any // messages, in order; those of a batch are the member "batch" of one
	seen   map[int]bool     // those that were awaited
	bad    []string         // other lines
	stderr servertest.Journal
	ended  bool // stdout is at its end

	exited chan struct{} // closed when the process is gone
	code   int
}

// folders are the folders of a run of the program.
type folders struct {
	home, cwd, user string
	path            string // a folder that PATH names first, or ""
}

// env is the environment of a program in the folders.
func (f folders) env() []string {
	return []string{
		"PATH=" + strings.TrimPrefix(f.path+string(filepath.ListSeparator), string(filepath.ListSeparator)) + os.Getenv("PATH"), "TERM=xterm", "HOME=" + f.user, "CODEX_HOME=" + f.home,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + filepath.Join(f.user, ".gitconfig"), "LANG=C.UTF-8", detector(),
	}
}

// command returns the command of a program in the folders, which is no server.
func (f folders) command(ctx context.Context, bin string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Dir, cmd.Env = f.cwd, f.env()
	return cmd
}

// newFolders makes them below a short path: the program cuts a long one where a line has little room.
func newFolders(t *testing.T) folders {
	t.Helper()
	tmp, err := os.MkdirTemp("", "run")
	must.OK(t, err)
	t.Cleanup(func() { must.Check(t, os.RemoveAll(tmp)) })
	if tmp, err = filepath.EvalSymlinks(tmp); err == nil {
		err = os.Chmod(tmp, 0o755) // other users run the program, too
	}
	must.OK(t, err)
	f := foldersIn(t, tmp)
	// Otherwise git init also writes a hint to standard error, and the order of two streams is not promised.
	write(t, filepath.Join(f.user, ".gitconfig"), "[init]\n\tdefaultBranch = main\n")
	return f
}

// foldersIn makes the folders of a run in a folder.
func foldersIn(t *testing.T, top string) folders {
	t.Helper()
	f := folders{home: filepath.Join(top, "home"), cwd: filepath.Join(top, "work"), user: filepath.Join(top, "user")}
	for _, dir := range []string{f.home, f.cwd, f.user} {
		must.OK(t, os.Mkdir(dir, 0o755))
	}
	return f
}

// prepare makes the folders of a run with a scripted model, and a configuration with this policy.
func prepare(t *testing.T, policy string, turns ...providertest.Turn) (folders, *providertest.Server) {
	t.Helper()
	f, model := newFolders(t), providertest.New(turns...)
	t.Cleanup(model.Close)
	writeConfig(t, f.home, fmt.Sprintf("approval_policy = %q\n"+configOf, policy, model.BaseURL()))
	return f, model
}

// writeConfig writes config.toml.
func writeConfig(t *testing.T, home, text string) {
	t.Helper()
	write(t, filepath.Join(home, "config.toml"), text)
}

// write writes a file for its owner alone, and makes its folder.
func write(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	must.OK(t, err)
}

// runLine runs a command line in this process.
func runLine(t *testing.T, name string, words ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), name, words, &out, &errs)
	return code, out.String(), errs.String()
}

// start starts the program, and kills it at the end of the test.
func start(t *testing.T, f folders, args ...string) *process {
	t.Helper()
	return launch(t, f, exec.Command(built(t), args...))
}

// launch starts the program by a given command.
func launch(t *testing.T, f folders, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, seen: map[int]bool{}, exited: make(chan struct{})}
	p.news = sync.NewCond(&p.mu)
	p.cmd.Dir, p.cmd.Env = f.cwd, f.env()
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout := must.Get(p.cmd.StdoutPipe())(t)
	p.stdout = stdout
	p.cmd.Stderr = &p.stderr
	must.OK(t, p.cmd.Start())
	go func() {
		defer close(p.exited)
		p.read(stdout)
		p.cmd.Wait()
		p.code = p.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("stderr:\n%s", p.errors())
		}
	})
	return p
}

func (p *process) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		p.mu.Lock()
		if line != "" {
			var m map[string]any
			var batch []any
			switch {
			case json.Unmarshal([]byte(line), &m) == nil:
				p.said = append(p.said, m)
			case json.Unmarshal([]byte(line), &batch) == nil:
				p.said = append(p.said, map[string]any{"batch": batch})
			default:
				p.bad = append(p.bad, line)
			}
		}
		p.ended = err != nil
		p.news.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// errors returns what the process wrote to standard error.
func (p *process) errors() string { return p.stderr.String() }

// send writes one line.
func (p *process) send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Fatalf("send %s: %v", line, err)
	}
}

// hello begins a session of a client with these capabilities, which a call that comes before the server's answer need not have.
func (p *process) hello(capabilities string) {
	p.t.Helper()
	p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":%s,"clientInfo":{"name":"test","version":"1"}}}`, capabilities))
	p.expect(map[string]any{"id": 0.0, "result": "*"})
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// call calls a tool. [process.answer] waits for the answer.
func (p *process) call(tool string, arguments map[string]any) {
	p.t.Helper()
	p.calls++
	p.send(line(map[string]any{"jsonrpc": "2.0", "id": p.calls, "method": "tools/call",
		"params": map[string]any{"name": tool, "arguments": arguments, "_meta": map[string]any{"progressToken": p.calls}}}))
}

// answer waits for the answer to the last call.
func (p *process) answer() map[string]any {
	p.t.Helper()
	return p.expect(map[string]any{"id": float64(p.calls), "method": nil})
}

// run runs a prompt to its end.
func (p *process) run(prompt string) map[string]any {
	p.t.Helper()
	p.call("codex", map[string]any{"prompt": prompt})
	return p.answer()
}

// result returns the result of an answer, and the id of its conversation.
func result(answer map[string]any) (result map[string]any, thread string) {
	result, _ = answer["result"].(map[string]any)
	structured, _ := result["structuredContent"].(map[string]any)
	thread, _ = structured["threadId"].(string)
	return result, thread
}

// expect waits for a message that contains the pattern and that no earlier call has returned. Other messages may come before it.
func (p *process) expect(pattern map[string]any) map[string]any {
	p.t.Helper()
	want, _ := json.Marshal(pattern)
	return p.await(string(want), func(m map[string]any) bool { return contains(m, pattern) })
}

// await waits for a message that matches and that no earlier call has returned.
func (p *process) await(what string, matches func(map[string]any) bool) map[string]any {
	p.t.Helper()
	m := p.find(matches)
	if m == nil {
		got := &strings.Builder{}
		for _, m := range p.messages() {
			fmt.Fprintf(got, "  %s\n", line(m))
		}
		p.t.Fatalf("no message contains %s; there were:\n%s", what, got)
	}
	return m
}

// find waits for a message that matches and that no earlier call has returned. It returns nil when no more comes.
func (p *process) find(matches func(map[string]any) bool) map[string]any {
	p.t.Helper()
	late := time.AfterFunc(limit, func() {
		p.t.Error("no message came in time")
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ended = true
		p.news.Broadcast()
	})
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for i, m := range p.said {
			if !p.seen[i] && matches(m) {
				p.seen[i] = true
				return m
			}
		}
		if p.ended {
			return nil
		}
		p.news.Wait()
	}
}

// messages returns all messages so far.
func (p *process) messages() []map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.bad) > 0 {
		p.t.Errorf("stdout has lines that are not messages: %q", p.bad)
	}
	return append([]map[string]any(nil), p.said...)
}

// wait waits for the end of the process and returns its exit status.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.exited:
		return p.code
	case <-time.After(limit):
		p.t.Fatal("the process did not end")
		return 0
	}
}

// freePort returns a port of this machine that was free.
func freePort(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// until waits for a condition that no event announces.
func until(t *testing.T, otherwise string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(otherwise)
		}
	}
}

// contains reports whether every member of pattern is in got. The string "*"
// stands for any value, null for an absent member or null.
func contains(got, pattern any) bool {
	switch want := pattern.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return false
		}
		for name, v := range want {
			have, found := g[name]
			if v == nil && have == nil {
				continue
			}
			if !found || !contains(have, v) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(want) {
			return false
		}
		for i := range want {
			if !contains(g[i], want[i]) {
				return false
			}
		}
		return true
	case string:
		return want == "*" && got != nil || want == got
	}
	return got == pattern
}
