package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

var kills = flag.Int("kills", 20, "kill the server at this `number` of moments of its tasks")

// tasksOfARound is the number of tasks of a server before it is killed, and commandsOfATask
// the number of commands of each task, one after another.
const tasksOfARound, commandsOfATask = 2, 2

// TestEndToEndKilledTasks kills the program at random moments of its tasks; the commands of
// some tasks are approved. The next program finds each task that the client knows, in the
// last state that the client saw or ended, and each thread continues. No command runs twice
// or without approval.
func TestEndToEndKilledTasks(t *testing.T) {
	f := newFolders(t)
	ran := filepath.Join(f.cwd, "ran")
	model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		verb, name, _ := strings.Cut(r.LastUserText(), " ")
		if verb == "resume" {
			return providertest.Say("resumed " + name)
		}
		n := 0
		for _, output := range r.ToolOutputs() {
			if strings.HasPrefix(output.CallID, name+"-") {
				n++
			}
		}
		if n == commandsOfATask {
			return providertest.Say("done " + name)
		}
		id := fmt.Sprintf("%s-%d", name, n)
		return providertest.Call(providertest.Shell(id, "bash", "-c", fmt.Sprintf("echo %s >> %q", id, ran)))
	}})
	t.Cleanup(model.Close)
	writeConfig(t, f.home, fmt.Sprintf(configOf, model.BaseURL()))

	k := &killer{t: t, f: f}
	k.usual = time.Second
	for round := range *kills {
		s := k.start()
		s.check(k.fresh())
		s.work(fmt.Sprint(round), round%5 > 0)
		s.kill()
	}
	s := k.start()
	s.check(k.fresh())
	unfinished := 0
	for _, task := range k.tasks {
		s.find(task)
		if !strings.Contains(task.seen.Message, "done") {
			unfinished++
		}
	}
	s.kill()
	t.Logf("%d kills, %d of them within a task: %d tasks were answered, %d of them did not finish; %d questions were answered",
		*kills, k.during, len(k.tasks), unfinished, k.accepted)
	if *kills >= 20 && (unfinished == 0 || unfinished == len(k.tasks)) {
		t.Error("no server was killed during its tasks")
	}

	data, err := os.ReadFile(ran)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{} // of lines, and of commands by task
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		name, _, _ := strings.Cut(line, "-")
		count[name]++
		if count[line]++; count[line] > 1 {
			t.Errorf("command %s ran %d times", line, count[line])
		}
	}
	for _, task := range k.tasks {
		if n := count[task.name]; task.asks && n > len(task.accepted) {
			t.Errorf("task %s ran %d commands, and %d were approved", task.name, n, len(task.accepted))
		}
	}
}

// killer starts servers of one home, one after another, and keeps the tasks that they
// returned.
type killer struct {
	t *testing.T
	f folders

	mu       sync.Mutex
	usual    time.Duration // from the answer with a task to the end of a round
	during   int           // kills before the end of a task
	tasks    []*killedTask
	checked  int // of tasks
	accepted int
}

// killedTask is a task as the client sees it.
type killedTask struct {
	name, id string
	asks     bool
	accepted map[string]bool // questions
	seen     taskView
}

// taskView is the result of tasks/get or tools/call.
type taskView struct {
	TaskID        string                     `json:"taskId"`
	ResultType    string                     `json:"resultType"`
	Status        string                     `json:"status"`
	Message       string                     `json:"statusMessage"`
	InputRequests map[string]json.RawMessage `json:"inputRequests"`
	Result        json.RawMessage            `json:"result"`
	Content       json.RawMessage            `json:"content"` // of a call that is not a task
	IsError       bool                       `json:"isError"`
}

// fresh returns the tasks that were not returned before.
func (k *killer) fresh() []*killedTask {
	fresh := k.tasks[k.checked:]
	k.checked = len(k.tasks)
	return fresh
}

// mortal is a server that will be killed.
type mortal struct {
	*killer
	cmd  *exec.Cmd
	in   io.Closer
	peer *jsonrpc.Peer
	ends chan error
}

func (k *killer) start() *mortal {
	k.t.Helper()
	bin := built(k.t)
	cmd := exec.Command(bin, "-engine", "native", "-c", "tasks.grace=0s")
	cmd.Dir = k.f.cwd
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + k.f.user, "CODEX_HOME=" + k.f.home}
	in, err := cmd.StdinPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _ = cmd.Process.Kill() }) // when the test failed
	s := &mortal{killer: k, cmd: cmd, in: in, peer: jsonrpc.NewPeer(jsonrpc.Lines(out, in, in), nil, nil), ends: make(chan error, 1)}
	go func() { s.ends <- s.peer.Run(context.Background()) }()
	return s
}

// kill kills the server, which may be dead, and reads the rest of its output.
func (s *mortal) kill() {
	_ = s.cmd.Process.Kill()
	<-s.ends
	_ = s.cmd.Wait()
}

const (
	waitingClient = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	pollingClient = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
)

// call sends a request. It returns false when the server was killed.
func (s *mortal) call(method, members string) (v taskView, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := s.peer.Call(ctx, method, json.RawMessage(`{`+members+`}`), &v)
	var refusal *jsonrpc.Error
	if errors.As(err, &refusal) || ctx.Err() != nil {
		s.t.Errorf("%s %s: %v", method, members, err)
	}
	return v, err == nil
}

// work runs tasks and kills the server before all have ended; with late, after one of them was
// answered.
func (s *mortal) work(round string, late bool) {
	answered, dead, killed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(answered) })
	if !late {
		first()
	}
	var begun time.Time
	go func() {
		defer close(killed)
		<-answered
		begun = time.Now()
		select {
		case <-dead:
		case <-time.After(rand.N(s.usual * 5 / 4)):
			_ = s.cmd.Process.Kill()
		}
	}()
	var working sync.WaitGroup
	var cut atomic.Bool
	for n := range tasksOfARound {
		working.Go(func() {
			task := &killedTask{name: fmt.Sprintf("%s.%d", round, n), asks: n > 0, accepted: map[string]bool{}}
			policy := map[bool]string{true: "untrusted", false: "never"}[task.asks]
			v, ok := s.call("tools/call", fmt.Sprintf(`"name":"codex","arguments":{"prompt":"run %s","approval-policy":%q},%s`, task.name, policy, pollingClient))
			first()
			if !ok {
				cut.Store(true)
				return
			}
			if v.ResultType != "task" || v.TaskID == "" {
				s.t.Errorf("task %s: %+v", task.name, v)
				return
			}
			s.mu.Lock()
			task.id = v.TaskID
			s.tasks = append(s.tasks, task)
			s.mu.Unlock()
			for s.poll(task) {
				<-time.After(10 * time.Millisecond)
			}
			if task.seen.Status != "completed" {
				cut.Store(true)
			}
		})
	}
	working.Wait()
	close(dead)
	<-killed
	switch took := time.Since(begun); { // the load of the machine changes
	case !cut.Load():
		s.usual = (s.usual + took) / 2
	default:
		s.during++
		s.usual = max(s.usual, took) + s.usual/20
	}
}

// poll gets a task once and answers its questions. It reports whether the task continues.
func (s *mortal) poll(task *killedTask) bool {
	v, ok := s.call("tasks/get", fmt.Sprintf(`"taskId":%q,%s`, task.id, pollingClient))
	if !ok {
		return false
	}
	task.seen = v
	for key := range v.InputRequests {
		task.accepted[key] = true // also where the answer does not arrive
		s.mu.Lock()
		s.accepted++
		s.mu.Unlock()
		for range 2 {
			if _, ok := s.call("tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":{%q:{"action":"accept"}},%s`, task.id, key, pollingClient)); !ok {
				return false
			}
		}
	}
	return v.Status == "working" || v.Status == "input_required"
}

// find gets a task of an earlier server.
func (s *mortal) find(task *killedTask) {
	s.t.Helper()
	v, ok := s.call("tasks/get", fmt.Sprintf(`"taskId":%q,%s`, task.id, pollingClient))
	if !ok {
		s.t.Fatalf("task %s is not found", task.name)
	}
	if v.Status != "completed" || v.TaskID != task.id {
		s.t.Errorf("task %s is %+v after the end of its server", task.name, v)
	}
	if task.seen.Status == "completed" && string(v.Result) != string(task.seen.Result) {
		s.t.Errorf("task %s was answered with %s, and then with %s", task.name, task.seen.Result, v.Result)
	}
	task.seen = v
}

// check gets the tasks of the previous server and continues their threads.
func (s *mortal) check(tasks []*killedTask) {
	s.t.Helper()
	var going sync.WaitGroup
	for _, task := range tasks {
		s.find(task)
		going.Go(func() {
			id, _, _ := strings.Cut(task.id, ".")
			v, ok := s.call("tools/call", fmt.Sprintf(`"name":"codex-reply","arguments":{"prompt":"resume %s","threadId":%q},%s`, task.name, id, waitingClient))
			if !ok || v.IsError || !strings.Contains(string(v.Content), "resumed "+task.name) {
				s.t.Errorf("thread of task %s is not resumed: %+v", task.name, v)
			}
		})
	}
	going.Wait()
}
