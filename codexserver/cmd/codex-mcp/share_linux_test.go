package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/shared"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var reopened = flag.Int("reopened", 6, "close and open the editor this `number` of times during a task")

// sharing has the folders of a test, whose shared servers end with it.
type sharing struct {
	t *testing.T
	f folders
}

func newSharing(t *testing.T, f folders) *sharing {
	t.Helper()
	s := &sharing{t, f}
	t.Cleanup(func() {
		if out, err := s.command(context.Background(), built(t), "shared", "stop").CombinedOutput(); err != nil {
			t.Errorf("shared stop: %v\n%s", err, out)
		}
		if t.Failed() {
			for _, log := range s.logs() {
				text, _ := os.ReadFile(log)
				t.Logf("%s:\n%s", log, text)
			}
		}
	})
	return s
}

// logs returns the logs of the servers.
func (s *sharing) logs() []string {
	logs, _ := filepath.Glob(filepath.Join(s.f.home, "codex-mcp", "run", "*.log"))
	return logs
}

// log returns the log of the only server.
func (s *sharing) log() string {
	s.t.Helper()
	logs := s.logs()
	if len(logs) != 1 {
		s.t.Fatalf("%q", logs)
	}
	return logs[0]
}

// command returns the command of a program, with the variables of the test.
func (s *sharing) command(ctx context.Context, bin string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Dir = s.f.cwd
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.f.user, "CODEX_HOME=" + s.f.home, detector()}
	return cmd
}

// servers returns the process ids of the servers that run.
func (s *sharing) servers() (pids []int) {
	s.t.Helper()
	out, err := s.command(s.t.Context(), built(s.t), "shared").Output()
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if _, rest, ok := strings.Cut(line, ": process "); ok {
			pid, _, _ := strings.Cut(rest, ",")
			n, err := strconv.Atoi(pid)
			if err != nil {
				s.t.Fatalf("%q: %v", line, err)
			}
			pids = append(pids, n)
		}
	}
	return pids
}

// link returns a link to the approvals page of the only server, whose log has none.
func (s *sharing) link() string {
	s.t.Helper()
	text, err := os.ReadFile(s.log())
	if err != nil || !strings.Contains(string(text), "codex-mcp page prints a link") || strings.Contains(string(text), "/#") {
		s.t.Errorf("the log says %s, %v", text, err)
	}
	folder, err := shared.Open(s.f.home)
	if err != nil {
		s.t.Fatal(err)
	}
	defer folder.Close()
	names, err := folder.Names()
	if err != nil || len(names) != 1 {
		s.t.Fatalf("sockets %q, %v", names, err)
	}
	status, err := folder.Ask(s.t.Context(), names[0], shared.Link)
	if err != nil {
		s.t.Fatal(err)
	}
	return status.Link
}

// TestEndToEndShared plays transcripts of TestEndToEnd through a relay. The server's
// messages are the same.
func TestEndToEndShared(t *testing.T) {
	t.Parallel()
	eachRelayed(t, func(t *testing.T, _ string, a *txtar.Archive) {
		var s *sharing
		got := playArchive(t, a, func(t *testing.T, f folders, args ...string) *process {
			s = newSharing(t, f)
			return launch(t, f, exec.Command(built(t), append([]string{"--shared"}, args...)...))
		})
		if diff := cmp.Diff(section(a, "server"), got); diff != "" {
			t.Errorf("the server sent (-want +got):\n%s", diff)
		}
		if pids := s.servers(); len(pids) != 1 {
			t.Errorf("servers %v, want one", pids)
		}
	})
}

// TestEndToEndSharedComesBack closes and opens two editors with different folders and
// environments while each has a task: by the end of standard input, and by killing the
// relay. The task of each goes on and
// asks for approval in the last editor and on the page, and runs its command once, with its own
// folder and environment. Another build of the program then gets a server of its own.
func TestEndToEndSharedComesBack(t *testing.T) {
	f := newFolders(t)
	released := make(chan struct{})
	model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		name := r.LastUserText()
		switch len(r.ToolOutputs()) {
		case 0:
			t := providertest.Call(providertest.Shell("a-"+name, "bash", "-c", `echo begun $EDITOR_NAME >> ran`))
			t.Wait = released
			return t
		case 1:
			return providertest.Call(providertest.Shell("b-"+name, "bash", "-c", `echo "$EDITOR_NAME in $PWD" >> ran`))
		}
		return providertest.Say("done " + name)
	}})
	t.Cleanup(model.Close)
	writeConfig(t, f.home, fmt.Sprintf(configOf, model.BaseURL()))
	if err := os.WriteFile(filepath.Join(f.home, "codex-mcp.toml"), []byte("[approvals]\nwhere = \"both\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSharing(t, f)
	k := &killer{t: t, f: f}
	bin := built(t)
	editors := []*editor{{name: "one"}, {name: "two"}}
	for _, e := range editors {
		e.dir = filepath.Join(f.cwd, e.name)
		if err := os.Mkdir(e.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		e.open = func(bin string) *mortal {
			cmd := s.command(context.Background(), bin, "--shared", "-engine", "native", "-c", "calls.grace=0s")
			cmd.Dir, cmd.Env = e.dir, append(cmd.Env, "EDITOR_NAME="+e.name)
			return k.launch(cmd)
		}
		e.now = e.open(bin)
		v, ok := e.now.call("tools/call", fmt.Sprintf(`"name":"codex","arguments":{"prompt":%q,"approval-policy":"untrusted"},%s`, e.name, pollingClient))
		if !ok || v.TaskID == "" {
			t.Fatalf("%+v", v)
		}
		e.task = v.TaskID
	}
	before := s.servers()
	for n := range *reopened {
		e := editors[n%2]
		if n%3 == 0 {
			e.now.kill()
		} else {
			_ = e.now.in.Close()
			<-e.now.ends
			_ = e.now.cmd.Wait()
		}
		e.now = e.open(bin)
		if v := e.get(); v.Status != "working" {
			t.Fatalf("after %d: %+v", n, v)
		}
	}
	if got := s.servers(); len(got) != 1 || len(before) != 1 || got[0] != before[0] {
		t.Errorf("servers %v, before %v", got, before)
	}
	page := visit(t, s.link())
	close(released)
	if q := page.await("open"); !strings.Contains(q.Question.Command, "begun") {
		t.Errorf("the page shows %+v", q)
	}
	for _, e := range editors {
		for range 2 {
			e.answer("accept")
			e.now.kill()
			e.now = e.open(bin)
		}
		for v := e.get(); v.Status != "completed"; v = e.get() {
			time.Sleep(time.Millisecond)
		}
		if v := e.get(); !strings.Contains(string(v.Result), "done "+e.name) {
			t.Errorf("%s: %s", e.name, v.Result)
		}
		ran, err := os.ReadFile(filepath.Join(e.dir, "ran"))
		if want := fmt.Sprintf("begun %s\n%[1]s in %s\n", e.name, e.dir); err != nil || string(ran) != want {
			t.Errorf("the commands wrote %q, want %q (%v)", ran, want, err)
		}
	}
	if q := page.await("decided"); q.Question.By != "client" {
		t.Errorf("the page shows %+v", q)
	}
	editors[0].now.kill()
	editors[0].now = editors[0].open(anotherBuild(t))
	if v := editors[0].get(); v.Status != "completed" {
		t.Errorf("another build finds %+v", v)
	}
	if got := s.servers(); len(got) != 2 || got[0] != before[0] {
		t.Errorf("servers %v, before %v", got, before)
	}
}

// editor is a client that comes back.
type editor struct {
	name, dir, task string
	open            func(bin string) *mortal
	now             *mortal
}

func (e *editor) get() taskView {
	v, ok := e.now.call("tasks/get", fmt.Sprintf(`"taskId":%q,%s`, e.task, pollingClient))
	if !ok {
		e.now.t.Errorf("%s: no answer", e.name)
	}
	return v
}

// answer waits for the question of the task and answers it.
func (e *editor) answer(action string) {
	v := e.get()
	for ; v.Status != "input_required"; v = e.get() {
		if v.Status != "working" {
			e.now.t.Fatalf("%s: %+v", e.name, v)
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(approve.Instant) // the page asks, too, so that an approval at once is no person's
	answers := map[string]any{}
	for key := range v.InputRequests {
		answers[key] = map[string]any{"action": action, "content": map[string]any{}}
	}
	text, err := json.Marshal(answers)
	if err != nil {
		e.now.t.Fatal(err)
	}
	e.now.call("tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":%s,%s`, e.task, text, pollingClient))
	for key := range v.InputRequests { // the next question has another key
		for w := e.get(); w.InputRequests[key] != nil; w = e.get() {
			time.Sleep(time.Millisecond)
		}
	}
}

// anotherBuild returns a copy of the program that counts as another version.
func anotherBuild(t *testing.T) string {
	t.Helper()
	program, err := os.ReadFile(built(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "codex-mcp")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSharedServerKilled kills the shared server during a call of an older client. The call
// gets an error, the relay ends, and the next one starts another server.
func TestSharedServerKilled(t *testing.T) {
	t.Parallel()
	f := newFolders(t)
	model := providertest.New(providertest.Turn{Wait: make(chan struct{})})
	t.Cleanup(model.Close)
	writeConfig(t, f.home, fmt.Sprintf(configOf, model.BaseURL()))
	s := newSharing(t, f)
	p := launch(t, f, exec.Command(built(t), "--shared", "-engine", "native"))
	p.hello(`{}`)
	seen := map[int]bool{}
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"go"}}}`)
	awaitRequests(t, model, 1)
	for _, pid := range s.servers() {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	p.expect(pattern(t, `{"id":1,"error":{"code":-32603}}`), seen)
	if code := p.wait(); code != 1 || !strings.Contains(p.errors(), "has ended") {
		t.Errorf("exit status %d, %s", code, p.errors())
	}
	if pids := s.servers(); len(pids) != 0 {
		t.Errorf("servers %v", pids)
	}
}

// TestSharedStop checks that shared stop returns when everything that the server started has ended,
// also after the last client: here a program that ignores the first signal.
func TestSharedStop(t *testing.T) {
	t.Parallel()
	f := newFolders(t)
	model := providertest.New(providertest.Say("done"))
	t.Cleanup(model.Close)
	writeConfig(t, f.home, "approval_policy = \"never\"\n"+fmt.Sprintf(configOf, model.BaseURL()))
	started, program := filepath.Join(f.user, "started"), filepath.Join(f.user, "notify")
	for path, text := range map[string]string{
		program:                                 fmt.Sprintf("#!/bin/sh\ntrap '' TERM\necho $$ > %[1]s.new\nmv %[1]s.new %[1]s\nsleep 600\nsleep 600\n", started),
		filepath.Join(f.home, "codex-mcp.toml"): fmt.Sprintf("[notify]\ncommand = [%q]\n", program),
	} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := newSharing(t, f)
	p := launch(t, f, exec.Command(built(t), "--shared", "-engine", "native"))
	p.hello(`{}`)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"x"}}}`)
	var pid int
	until(t, "the notification does not come", func() bool {
		text, _ := os.ReadFile(started)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid > 0
	})
	if out, err := s.command(t.Context(), built(t), "shared", "stop").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "ended ") {
		t.Errorf("%v: %s", err, out)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("a program that the server started is left: %v", err)
	}
}

// TestSharedUnsure starts the program where it cannot be sure of the socket. It serves its
// client itself and says why.
func TestSharedUnsure(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, home, run string) error{
		"home is open to others": func(_ *testing.T, home, _ string) error { return os.Chmod(home, 0o777) },
		"run is open to others": func(_ *testing.T, _, run string) error {
			return errors.Join(os.MkdirAll(run, 0o700), os.Chmod(run, 0o755))
		},
		"run is a link": func(t *testing.T, _, run string) error {
			return errors.Join(os.MkdirAll(filepath.Dir(run), 0o700), os.Symlink(t.TempDir(), run))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFolders(t)
			writeConfig(t, f.home, fmt.Sprintf(configOf, "http://127.0.0.1:9"))
			if err := spoil(t, f.home, filepath.Join(f.home, "codex-mcp", "run")); err != nil {
				t.Fatal(err)
			}
			p := launch(t, f, exec.Command(built(t), "--shared", "-engine", "native"))
			p.hello(`{}`)
			p.stdin.Close()
			if code := p.wait(); code != 0 || !strings.Contains(p.errors(), "this process serves its client itself: it cannot share a server") {
				t.Errorf("exit status %d, %s", code, p.errors())
			}
		})
	}
}

// TestSharedKeys starts relays whose environments differ. Only the variables that the server
// reads lead to another server, and codex-mcp shared names them without their values. The variables of
// hosts are those that Copilot 1.0.102 and Gemini 0.61.0 gave their servers.
func TestSharedKeys(t *testing.T) {
	t.Parallel()
	f := newFolders(t)
	writeConfig(t, f.home, fmt.Sprintf(configOf, "http://127.0.0.1:9")+"env_key = \"MOCK_KEY\"\n")
	s := newSharing(t, f)
	for _, tt := range []struct {
		environ string
		servers int
	}{
		{"OTHER=1", 1},
		{"OTHER=2", 1},
		{"GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.bareRepository GIT_CONFIG_VALUE_0=explicit COPILOT_HOME=x PYTHONUNBUFFERED=1", 1},
		{"GEMINI_CLI=1 GEMINI_CLI_NO_RELAUNCH=true GEMINI_CLI_TRUST_WORKSPACE=true", 1},
		{"SSL_CERT_FILE=/value", 2},
		{"MOCK_KEY=value1", 3},
		{"MOCK_KEY=value2", 4},
		{"OPENAI_API_KEY=value3", 5},
	} {
		p := launch(t, f, exec.Command("env", append(strings.Fields(tt.environ), built(t), "--shared", "-engine", "native")...))
		p.hello(`{}`)
		if got := len(s.servers()); got != tt.servers {
			t.Errorf("with %s: %d servers, want %d", tt.environ, got, tt.servers)
		}
		p.stdin.Close()
		p.wait()
	}
	list, err := s.command(t.Context(), built(t), "shared").Output()
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.Lines(string(list)) {
		if _, names, ok := strings.Cut(strings.TrimSpace(line), " in "); ok && strings.HasPrefix(line, "  differs from ") {
			count[names]++
		}
	}
	if diff := cmp.Diff(map[string]int{
		"MOCK_KEY": 3, "OPENAI_API_KEY": 1, "SSL_CERT_FILE": 1, "MOCK_KEY, OPENAI_API_KEY": 2, "MOCK_KEY, SSL_CERT_FILE": 2, "OPENAI_API_KEY, SSL_CERT_FILE": 1,
	}, count); diff != "" || strings.Contains(string(list), "value") {
		t.Errorf("(-want +got):\n%s\n%s", diff, list)
	}
}
