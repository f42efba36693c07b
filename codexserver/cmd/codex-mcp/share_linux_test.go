package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/shared"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// sharing has the folders of a test, whose shared servers end with it.
type sharing struct {
	t *testing.T
	f folders
}

func newSharing(t *testing.T, f folders) *sharing {
	t.Helper()
	s := &sharing{t, f}
	t.Cleanup(func() {
		if out, err := f.command(context.Background(), built(t), "shared", "stop").CombinedOutput(); err != nil {
			t.Errorf("shared stop: %v\n%s", err, out)
		}
		if t.Failed() {
			t.Log(s.log())
		}
	})
	return s
}

// log returns the log of the only server.
func (s *sharing) log() string {
	logs, _ := filepath.Glob(filepath.Join(s.f.home, "codex-mcp", "run", "*.log"))
	if len(logs) != 1 {
		return fmt.Sprintf("the logs are %q", logs)
	}
	b, err := os.ReadFile(logs[0])
	return fmt.Sprint(string(b), err)
}

// shown returns what codex-mcp shared prints.
func (s *sharing) shown() string {
	s.t.Helper()
	out := must.Get(s.f.command(s.t.Context(), built(s.t), "shared").Output())(s.t)
	return string(out)
}

// servers returns the process ids of the servers that run.
func (s *sharing) servers() (pids []string) {
	s.t.Helper()
	for _, found := range regexp.MustCompile(`: process (\d+),`).FindAllStringSubmatch(s.shown(), -1) {
		pids = append(pids, found[1])
	}
	return pids
}

// link returns a link to the approvals page of the only server, whose log has none.
func (s *sharing) link() string {
	s.t.Helper()
	if text := s.log(); !strings.Contains(text, "codex-mcp page prints a link") || strings.Contains(text, "/#") {
		s.t.Errorf("the log says %s", text)
	}
	folder := must.Get(shared.Open(s.f.home))(s.t)
	defer folder.Close()
	names, err := folder.Names()
	if err != nil || len(names) != 1 {
		s.t.Fatalf("sockets %q, %v", names, err)
	}
	status := must.Get(folder.Ask(s.t.Context(), names[0], shared.Link))(s.t)
	return status.Link
}

// editor is a client that comes back.
type editor struct {
	name, dir, task string
	now             *mortal
}

// TestEndToEndSharedComesBack closes and opens two editors with different folders and environments while each has a task: by the
// end of standard input, and by killing the relay. The task of each goes on and asks for approval in the last editor and on the
// page, and runs its command once, with its own folder and environment. Another build of the program gets a server of its own.
func TestEndToEndSharedComesBack(t *testing.T) {
	t.Parallel()
	f := newFolders(t)
	released := make(chan struct{})
	model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		name := r.LastUserText()
		if len(r.ToolOutputs()) > 0 {
			return providertest.Say("done " + name)
		}
		t := providertest.Call(providertest.Shell("c-"+name, "bash", "-c", `echo "$EDITOR_NAME in $PWD" >> ran`))
		t.Wait = released
		return t
	}})
	t.Cleanup(model.Close)
	writeConfig(t, f.home, fmt.Sprintf(configOf, model.BaseURL()))
	write(t, filepath.Join(f.home, "codex-mcp.toml"), "[approvals]\nwhere = \"both\"\n")
	s, k, bin := newSharing(t, f), &killer{t: t, f: f}, built(t)
	open := func(e *editor) {
		of := f
		of.cwd = e.dir
		e.now = &mortal{killer: k, p: launch(t, of, exec.Command("env", "EDITOR_NAME="+e.name, bin, "--shared", "--engine", "native", "-c", "calls.grace=0s"))}
	}
	get := func(e *editor) taskView {
		v, ok := e.now.call("tasks/get", fmt.Sprintf(`"taskId":%q,%s`, e.task, pollingClient))
		if !ok {
			t.Fatalf("%s: no answer", e.name)
		}
		return v
	}
	editors := []*editor{{name: "one"}, {name: "two"}}
	for _, e := range editors {
		e.dir = filepath.Join(f.cwd, e.name)
		must.OK(t, os.Mkdir(e.dir, 0o755))
		open(e)
		v, ok := e.now.call("tools/call", fmt.Sprintf(`"name":"codex","arguments":{"prompt":%q,"approval-policy":"untrusted"},%s`, e.name, pollingClient))
		if e.task = v.TaskID; !ok || e.task == "" {
			t.Fatalf("%+v", v)
		}
	}
	shown := s.shown()
	for _, e := range editors {
		turn := regexp.MustCompile(fmt.Sprintf(`(?m)^  the turn of %s in %s: [a-z]`, threadOf(e.task), regexp.QuoteMeta(e.dir)))
		client := regexp.MustCompile(fmt.Sprintf(`(?m)^  a client in %s, process %d, since `, regexp.QuoteMeta(e.dir), e.now.p.cmd.Process.Pid))
		if !turn.MatchString(shown) || !client.MatchString(shown) {
			t.Errorf("codex-mcp shared does not show what %s does:\n%s", e.name, shown)
		}
	}
	before := s.servers()
	editors[0].now.kill()
	editors[1].now.end()
	for _, e := range editors {
		open(e)
		if v := get(e); v.Status != "working" {
			t.Fatalf("%+v", v)
		}
	}
	if got := s.servers(); len(got) != 1 || len(before) != 1 || got[0] != before[0] {
		t.Errorf("servers %v, before %v", got, before)
	}
	page := servertest.Visit(t, s.link()).Events()
	close(released)
	page.Question("open")
	for _, e := range editors {
		until(t, e.name+" is not asked", func() bool { return get(e).Status == "input_required" })
		<-time.After(approve.Instant) // the page asks, too, so that an approval at once is no person's
		e.now.poll(e.task)
		until(t, e.name+" has no end", func() bool { return get(e).Status == "completed" })
		if v := get(e); !strings.Contains(string(v.Result), "done "+e.name) {
			t.Errorf("%s: %s", e.name, v.Result)
		}
		ran, err := os.ReadFile(filepath.Join(e.dir, "ran"))
		if want := fmt.Sprintf("%s in %s\n", e.name, e.dir); err != nil || string(ran) != want {
			t.Errorf("the command wrote %q, want %q (%v)", ran, want, err)
		}
	}
	if q := page.Question("decided"); q.Question.By != "client" {
		t.Errorf("the page shows %+v", q)
	}
	editors[0].now.kill()
	bin = anotherBuild(t)
	open(editors[0])
	if v := get(editors[0]); v.Status != "completed" {
		t.Errorf("another build finds %+v", v)
	}
	if got := s.servers(); len(got) != 2 || got[0] != before[0] {
		t.Errorf("servers %v, before %v", got, before)
	}
}

// anotherBuild returns a copy of the program that counts as another version.
func anotherBuild(t *testing.T) string {
	t.Helper()
	program := must.Get(os.ReadFile(built(t)))(t)
	path := filepath.Join(t.TempDir(), "codex-mcp")
	must.OK(t, testenv.WriteProgram(path, program))
	must.OK(t, os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)))
	return path
}

// TestSharedUnsure starts the program where it cannot be sure of the socket. It serves its client itself and says why.
func TestSharedUnsure(t *testing.T) {
	t.Parallel()
	f := newFolders(t)
	writeConfig(t, f.home, fmt.Sprintf(configOf, "http://127.0.0.1:9"))
	must.OK(t, os.Chmod(f.home, 0o777))
	p := launch(t, f, exec.Command(built(t), "--shared", "--engine", "native"))
	p.hello(`{}`)
	p.stdin.Close()
	if code := p.wait(); code != 0 || !strings.Contains(p.errors(), "this process serves its client itself: it cannot share a server") {
		t.Errorf("exit status %d, %s", code, p.errors())
	}
}
