package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/history"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

var kills = flag.Int("kills", nightly.Number(5, 200), "kill the server at this `number` of moments of its tasks")

// worked matches the name of a task in a request to the model.
var worked = regexp.MustCompile(`task-(n[0-9]+)`)

// workModel does the next step that the history does not have. The steps are three commands and a
// patch. The first command leaves a process running; a rule allows the others.
func workModel(f folders) providertest.Turn {
	ran := filepath.Join(f.cwd, "ran")
	return providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		name := string(worked.FindSubmatch(r.Body)[1])
		var cut strings.Builder
		n := 0
		for _, output := range r.ToolOutputs() {
			if n++; strings.HasPrefix(output.Output, "aborted") {
				cut.WriteString(fmt.Sprintf(" interrupted-%d", n))
			}
		}
		id := fmt.Sprintf("%s-%d", name, n+1)
		switch n {
		case 0:
			return providertest.Call(providertest.Shell(id, "sh", "-c", fmt.Sprintf("echo %s >> %q; setsid sleep 600 > /dev/null 2>&1 & sleep 0.02; echo out", id, ran)))
		case 1, 3:
			line := filepath.Join(f.user, id)
			if err := os.WriteFile(line, []byte(id+"\n"), 0o600); err != nil {
				return providertest.Say(err.Error())
			}
			return providertest.Call(providertest.Shell(id, "dd", "if="+line, "of="+ran, "oflag=append", "conv=notrunc"))
		case 2:
			var patch strings.Builder
			patch.WriteString("*** Begin Patch\n")
			for _, file := range "abc" {
				patch.WriteString(fmt.Sprintf("*** Add File: %s.%c\n%s", name, file, strings.Repeat("+line\n", 2000)))
			}
			return providertest.Call(providertest.Shell(id, "apply_patch", patch.String()+"*** End Patch\n"))
		}
		return providertest.Say("done " + name + cut.String())
	}}
}

// TestEndToEndKilledTasks kills the program at moments of tasks: after a change of the conversation's file, or at any time; some
// servers that continue a task are killed too. The next program continues each task to its end. Package history checks what
// happened. The step soak kills more often.
func TestEndToEndKilledTasks(t *testing.T) {
	t.Parallel()
	f := newFolders(t)
	model := providertest.New(workModel(f))
	t.Cleanup(model.Close)
	writeConfig(t, f.home, "approval_policy = \"untrusted\"\n"+fmt.Sprintf(configOf, model.BaseURL()))
	path := filepath.Join(f.home, "record")
	settings := fmt.Sprintf("[approvals]\nlog = %q\nallow = [{command = [\"dd\"], outside = true}]\n", path)
	write(t, filepath.Join(f.home, "codex-mcp.toml"), settings)
	k := &killer{t: t, f: f, mark: "KILL_TEST=" + rand.Text()}
	t.Cleanup(func() { k.sweep() })
	h := &history.History{}
	times := *kills
	foreground, killed, interrupted := 0, 0, 0
	for n, hit := 0, 0; hit < times && n < 4*times; n++ {
		name := fmt.Sprintf("n%d", n)
		task, kills := k.run(name)
		killed += kills
		if task != nil && kills > 0 {
			hit++
		}
		if task == nil {
			foreground++ // its call ended with the server, as every call without a task
			continue
		}
		if !strings.Contains(task.Told, "done "+name) && !k.never(name, task.Told) {
			t.Errorf("task %s was told %.2000s", name, task.Told)
		}
		if strings.Contains(task.Told, "interrupted-") {
			interrupted++
		}
		h.Tasks = append(h.Tasks, *task)
		paths := k.rollouts(task.Thread)
		if len(paths) != 1 {
			t.Fatal(paths)
		}
		must.OK(t, h.ReadRollout(paths[0]))
	}
	pairs(t, path)
	for _, path := range []string{path + ".1", path} { // many kills fill a file
		if err := h.ReadRecord(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	ran := must.Get(os.ReadFile(filepath.Join(f.cwd, "ran")))(t)
	k.effects(h, string(ran))
	h.Left = k.left()
	for _, fault := range h.Check() {
		t.Error(fault)
	}
	t.Logf("%d kills; %d tasks, in %d of them a call was interrupted; %d calls without a task", killed, len(h.Tasks), interrupted, foreground)
	if killed < times {
		t.Error("too few servers were killed within their tasks")
	}
}

// pairs checks that each beginning in a record has one end, when the next server has written a line.
func pairs(t *testing.T, path string) {
	t.Helper()
	next := record.New(path, 0)
	must.Get(record.To(next).Add(record.Line{Event: record.Decided}, false))(t)
	must.OK(t, next.Close())
	open, left := map[string]int{}, 0
	for text := range bytes.Lines(must.Get(os.ReadFile(path))(t)) {
		l := must.Get(record.Parse(text))(t)
		switch call := l.Server + " " + l.Thread + " " + l.Call; {
		case l.Event == record.Begins:
			open[call]++
		case l.Event == record.Ends:
			open[call]--
		}
		if strings.HasPrefix(l.Words, "unknown") {
			left++
		}
	}
	for call, n := range open {
		if n != 0 {
			t.Errorf("%s: %d beginnings more than ends", call, n)
		}
	}
	t.Logf("%d calls, of which servers left %d without an end", len(open), left)
}

// never reports whether a client was told, truly, that nothing of a task ran: its server was killed
// between the record of the task and that of its turn.
func (k *killer) never(name, told string) bool {
	ran, err := os.ReadFile(filepath.Join(k.f.cwd, "ran"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // nothing has run
		k.t.Fatal(err)
	}
	return strings.Contains(told, "nothing of it ran, and its message is not in the conversation") && !strings.Contains(string(ran), name+"-")
}

// effects counts what commands have done, of which each has written a line.
func (k *killer) effects(h *history.History, ran string) {
	count := map[string]int{}
	for line := range strings.Lines(ran) {
		count[strings.TrimSpace(line)]++
	}
	for _, c := range h.Calls {
		if !c.Patch {
			c.Effects = count[c.Call]
			delete(count, c.Call)
		}
	}
	for id, n := range count { // of calls without a task, unless the conversation of one lacks it
		if i := slices.IndexFunc(h.Tasks, func(t history.Task) bool { return strings.HasPrefix(id, t.Name+"-") }); i >= 0 {
			own := history.ID{Thread: h.Tasks[i].Thread, Call: id}
			h.Calls[own] = &history.Call{ID: own, Effects: n}
		}
		if n > 1 {
			k.t.Errorf("%s ran %d times", id, n)
		}
	}
}

// run runs a task and kills its server once or twice. It returns what its client was told, or nil
// if the call had not become a task.
func (k *killer) run(name string) (task *history.Task, kills int) {
	id := ""
	told := ""
	for life := 0; ; life++ {
		s := k.start()
		s.before = s.rollouts("")
		stop := make(chan struct{})
		var killing sync.WaitGroup
		known := id
		if life == 0 || life == 1 && mathrand.N(4) == 0 {
			killing.Go(func() {
				if s.killLater(known, stop) {
					kills++
				}
			})
		}
		var v taskView
		ok := true
		if life == 0 {
			v, ok = s.call("tools/call", fmt.Sprintf(`"name":"codex","arguments":{"prompt":"task-%s"},%s`, name, pollingClient))
			if id = v.TaskID; ok && id == "" {
				k.t.Errorf("task %s: %+v", name, v)
			}
		}
		for ok && id != "" {
			if v, ok = s.poll(id); v.Status == "completed" || v.Status == "cancelled" {
				told = string(v.Result)
				break
			}
			<-time.After(2 * time.Millisecond)
		}
		close(stop)
		killing.Wait()
		if told != "" {
			s.end()
			thread, _, _ := strings.Cut(id, ".")
			return &history.Task{Name: name, Thread: thread, Ended: v.Status == "completed", Told: told}, kills
		}
		s.kill()
		if life == 0 && id == "" {
			if id = k.lost(); id == "" {
				return nil, kills
			}
		}
	}
}

// lost returns the id of an unfinished task whose id the client did not get, or "".
func (k *killer) lost() string {
	tasks, err := taskfile.New(k.f.home, nil).Gone()
	must.Check(k.t, err)
	for _, task := range tasks {
		if !slices.Contains(k.found, task.ID) { // one that cannot be continued stays
			k.found = append(k.found, task.ID)
			return task.ID
		}
	}
	return ""
}

// killLater kills the server after some changes of the file of its task's conversation, or after a time.
// It returns false if stop is closed before.
func (s *mortal) killLater(id string, stop <-chan struct{}) bool {
	changes, after := 2+mathrand.N(14), time.After(mathrand.N(400*time.Millisecond))
	if mathrand.N(4) > 0 {
		after = nil
	}
	thread, _, _ := strings.Cut(id, ".")
	path, size := "", int64(0)
	for changes > 0 {
		select {
		case <-stop:
			return false
		case <-after:
			changes = 0
			continue
		case <-time.After(200 * time.Microsecond):
		}
		if path == "" {
			paths := s.rollouts(thread)
			if thread == "" {
				paths = slices.DeleteFunc(paths, func(path string) bool { return slices.Contains(s.before, path) })
			}
			if len(paths) == 0 {
				continue
			}
			path = paths[0]
		}
		if info, err := os.Stat(path); err == nil && info.Size() != size {
			size = info.Size()
			changes--
		}
	}
	<-time.After(mathrand.N(2 * time.Millisecond))
	_ = s.p.cmd.Process.Kill()
	return true
}

// rollouts returns the files of the conversations in the home, or that of one thread.
func (k *killer) rollouts(thread string) []string {
	paths, _ := filepath.Glob(filepath.Join(k.f.home, "sessions", "*", "*", "*", "rollout-*"+thread+".jsonl"))
	return paths
}

// killer starts servers of one home, one after another.
type killer struct {
	t     *testing.T
	f     folders
	mark  string   // a variable that all their processes inherit
	found []string // the ids that lost has returned
}

// taskView is the result of tasks/get or tools/call.
type taskView struct {
	TaskID        string                     `json:"taskId"`
	Status        string                     `json:"status"`
	InputRequests map[string]json.RawMessage `json:"inputRequests"`
	Result        json.RawMessage            `json:"result"`
	Content       json.RawMessage            `json:"content"` // of a call that is not a task
	IsError       bool                       `json:"isError"`
	Structured    struct {
		ThreadID string `json:"threadId"`
	} `json:"structuredContent"`
}

// mortal is a server that will be killed.
type mortal struct {
	*killer
	p      *process
	ids    int
	before []string // the files of conversations when it started
}

func (k *killer) start(args ...string) *mortal {
	k.t.Helper()
	words := append([]string{k.mark, built(k.t), "--engine", "native", "-c", "calls.grace=0s"}, args...)
	return &mortal{killer: k, p: launch(k.t, k.f, exec.Command("env", words...))}
}

// kill kills the server, which may be dead, and waits for it.
func (s *mortal) kill() {
	_ = s.p.cmd.Process.Kill()
	s.p.wait()
}

const (
	waitingClient = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	pollingClient = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
)

// call sends a request. It returns false when the server was killed.
func (s *mortal) call(method, members string) (v taskView, ok bool) {
	s.t.Helper()
	s.ids++
	_, _ = fmt.Fprintf(s.p.stdin, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`+"\n", s.ids, method, members) // the server may be dead
	m := s.p.find(func(m map[string]any) bool { return m["method"] == nil && m["id"] == float64(s.ids) })
	if m == nil {
		return v, false
	}
	raw, err := json.Marshal(m["result"])
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil || m["error"] != nil {
		s.t.Errorf("%s %s: %v, %v", method, members, m["error"], err)
	}
	return v, m["error"] == nil
}

// end ends the server as its client does, and waits for it.
func (s *mortal) end() {
	_ = s.p.stdin.Close()
	s.p.wait()
}

// poll gets a task once and accepts its questions. It returns false if the server was killed.
func (s *mortal) poll(id string) (v taskView, ok bool) {
	v, ok = s.call("tasks/get", fmt.Sprintf(`"taskId":%q,%s`, id, pollingClient))
	for key := range v.InputRequests {
		for range 2 {
			if _, ok := s.call("tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":{%q:{"action":"accept"}},%s`, id, key, pollingClient)); !ok {
				return v, false
			}
		}
	}
	return v, ok
}

// left returns the processes that are left of the servers, after a while.
func (k *killer) left() (left []string) {
	for deadline := time.Now().Add(limit); ; <-time.After(10 * time.Millisecond) {
		left = nil
		dirs, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range dirs {
			if env, _ := os.ReadFile(dir + "/environ"); strings.Contains(string(env), k.mark) {
				words, _ := os.ReadFile(dir + "/cmdline")
				left = append(left, fmt.Sprintf("%s %q", filepath.Base(dir), words))
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
	}
}

// sweep kills what is left when the test failed.
func (k *killer) sweep() {
	for _, p := range k.left() {
		word, _, _ := strings.Cut(p, " ")
		if pid, err := strconv.Atoi(word); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
