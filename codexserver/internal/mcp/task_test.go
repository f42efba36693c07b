package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// poller connects a client that polls tasks to a server.
func poller(t testing.TB, e engine.Engine, o *codexserver.Options) *servertest.Client {
	t.Helper()
	o.Home, o.Changes.Read = testenv.Home(t), new(false)
	return servertest.Join(t, codexserver.New(e, o), servertest.Host{Era: servertest.Polls, Answer: servertest.Never})
}

const polling = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

// newTask starts a turn that must become a task, and returns its id.
func newTask(t testing.TB, p *servertest.Client, prompt string) string {
	t.Helper()
	raw, err := p.Send(t.Context(), "tools/call", fmt.Sprintf(`"name":"codex","arguments":{"prompt":%q}`, prompt))
	must.OK(t, err)
	var r modern.CreateTaskResult
	if err := modern.Decode(raw, &r); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return r.TaskID
}

func getTask(t testing.TB, p *servertest.Client, id string) modern.DetailedTask {
	t.Helper()
	raw, err := p.Send(t.Context(), "tasks/get", fmt.Sprintf(`"taskId":%q`, id))
	must.OK(t, err)
	var r modern.GetTaskResult
	if err := modern.Decode(raw, &r); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return r.Task
}

// TestMemoryOfFinishedTasks finishes many tasks with results of 40 kB, of which the
// server keeps little in memory: 2 to 4 kB a task, depending on what the runtime keeps at the moment.
func TestMemoryOfFinishedTasks(t *testing.T) {
	const warm, tasks, most = 20, 60, 10 << 10
	release := make(chan struct{})
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		<-release
		words := strings.Repeat("x", 40_000)
		host.Emit(protocol.TaskComplete{LastAgentMessage: &words})
		return nil
	})
	p := poller(t, e, &codexserver.Options{Tasks: codexserver.TaskOptions{Grace: -1}})
	var before uint64
	for i := range warm + tasks {
		if i == warm {
			before = heap()
		}
		id := newTask(t, p, "go")
		release <- struct{}{}
		for done := false; !done; {
			_, done = getTask(t, p, id).(*modern.CompletedTask)
		}
	}
	grown := (int64(heap()) - int64(before)) / tasks
	t.Logf("a finished task takes %d bytes", grown)
	if grown > most {
		t.Errorf("a finished task takes %d bytes, want at most %d", grown, most)
	}
}

// heap returns how many bytes of the heap are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // also what had a finalizer
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestTaskFileStatus reads the file of a running task, as another process does.
func TestTaskFileStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
			<-time.After(10 * time.Second)
			host.Emit(protocol.ExecCommandBegin{CallID: "1", Command: []string{"go", "test"}, Cwd: "/"})
			<-ctx.Done()
			return ctx.Err()
		})
		o := &codexserver.Options{}
		p := poller(t, e, o)
		id := newTask(t, p, "go")
		<-time.After(20 * time.Second)
		synctest.Wait()
		task, owner, err := taskfile.New(o.Home, nil).Get(id)
		if err != nil || owner != taskfile.Other || task.Message != "running go test" {
			t.Errorf("%+v, %v, %v", task, owner, err)
		}
		if at := task.Updated; time.Since(at) != 11*time.Second { // when the command began
			t.Errorf("the file was written %v ago", time.Since(at))
		}
	})
}

// lostWork runs two commands and a patch, and waits.
var lostWork = engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
	host.Emit(protocol.ExecCommandBegin{CallID: "1", Command: []string{"go", "vet"}, Cwd: "/work"})
	host.Emit(protocol.ExecCommandEnd{CallID: "1", ExitCode: 3})
	host.Emit(protocol.PatchApplyBegin{CallID: "2", Changes: map[string]protocol.FileChange{"/work/new": {Add: &protocol.FileContent{Content: "one\n"}}}})
	host.Emit(protocol.PatchApplyEnd{CallID: "2", Success: true})
	host.Emit(protocol.ExecCommandBegin{CallID: "3", Command: []string{"go", "test"}, Cwd: "/work"})
	<-ctx.Done()
	return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
})

// did is what a result reports about the turn.
type did struct {
	ThreadID, Status string
	Content          string
	Changes          []change
	Commands         []command
}

type change struct{ Path, Kind string }

type command struct {
	Command  string
	ExitCode *int
}

// serveHome serves one client that polls tasks, with the files of a home. The observer may be nil.
func serveHome(t *testing.T, e engine.Engine, home string, o codexserver.Observer) *servertest.Client {
	s := codexserver.New(e, &codexserver.Options{Home: home, Tasks: codexserver.TaskOptions{Grace: time.Second}, Observer: o})
	return servertest.Join(t, s, servertest.Host{Era: servertest.Polls, Answer: servertest.Never})
}

// TestTaskLostWithItsServer ends the server of a task, orderly and at once. The next server
// returns what ran, what changed, and how to continue.
func TestTaskLostWithItsServer(t *testing.T) {
	for _, killed := range []bool{false, true} {
		bubble(t, fmt.Sprint("killed ", killed), func(t *testing.T) {
			home := testenv.Home(t)
			first := serveHome(t, lostWork, home, nil)
			id := newTask(t, first, "go")
			synctest.Wait()
			left := home
			if killed {
				left = testenv.Home(t) // as the file was at this moment, with a lock that no process holds
				must.OK(t, os.CopyFS(left, os.DirFS(home)))
			}
			first.End()
			next := serveHome(t, lostWork, left, nil)
			defer next.End()
			task, ok := getTask(t, next, id).(*modern.CompletedTask)
			if !ok {
				t.Fatal("the task has not ended")
			}
			var result struct {
				Content           []struct{ Text string }
				IsError           bool
				StructuredContent did
			}
			must.OK(t, json.Unmarshal(task.Result, &result))
			thread, _, _ := strings.Cut(id, ".")
			got := result.StructuredContent
			var inText did
			last := result.Content[len(result.Content)-1].Text
			if err := json.Unmarshal([]byte(last), &inText); err != nil {
				t.Errorf("the last block is %q: %v", last, err)
			}
			if words := result.Content[0].Text; !result.IsError || !strings.Contains(words, "2 commands") || !strings.Contains(words, "1 file") || !strings.Contains(words, thread) || got.Content != words {
				t.Errorf("error %v: %s; structured %q", result.IsError, words, got.Content)
			}
			got.Content = ""
			must.Equal(t, "in the text", got, inText)
			want := did{
				ThreadID: thread, Status: "aborted",
				Changes:  []change{{"/work/new", "add"}},
				Commands: []command{{"go vet", new(3)}, {"go test", nil}},
			}
			must.Equal(t, "the result", want, got)
			if words := task.StatusMessage; killed && (words == nil || !strings.Contains(*words, "2 commands")) {
				t.Errorf("the status message is %v", words)
			}
		})
	}
}

// heir continues turns of servers that were killed, when it may.
type heir struct {
	engine.Engine
	may     chan struct{} // nil for a server whose turns never end
	resumed chan struct{} // has an element for each conversation that waits for may
}

func (e heir) Traits() engine.Traits {
	return engine.Traits{CanContinue: func(context.Context) error { return nil }}
}

func (e heir) Find(_ context.Context, id string) (engine.Saved, error) {
	return engine.Saved{ID: id}, nil
}

func (e heir) Resume(_ context.Context, s engine.Saved, _ protocol.Config, host engine.Host) (engine.Conversation, error) {
	e.resumed <- struct{}{}
	<-e.may
	host.Emit(protocol.SessionConfigured{SessionID: s.ID})
	return inherited{s.ID, host}, nil
}

// inherited is a conversation whose continued turns end at once.
type inherited struct {
	id   string
	host engine.Host
}

func (c inherited) ID() string   { return c.id }
func (c inherited) Close() error { return nil }
func (c inherited) Turn(_ context.Context, in protocol.TurnInput) error {
	if in.Continue == nil {
		return errors.New("not continued")
	}
	c.host.Emit(protocol.TaskStarted{})
	c.host.Emit(protocol.TaskComplete{LastAgentMessage: new("continued")})
	return nil
}

// killedTask starts a task and returns its home as it was when its server was killed.
func killedTask(t *testing.T, e engine.Engine) (left, id string) {
	t.Helper()
	home := testenv.Home(t)
	p := serveHome(t, heir{Engine: e}, home, nil)
	defer p.End()
	id = newTask(t, p, "go")
	synctest.Wait()
	left = testenv.Home(t)
	must.OK(t, os.CopyFS(left, os.DirFS(home)))
	return left, id
}

// endedServers writes into the file of a killed task how many servers it has ended.
func endedServers(t *testing.T, left, id, ended string) {
	t.Helper()
	path := filepath.Join(left, "codex-mcp", "tasks", "task-"+id+".json")
	file := bytes.Replace(must.Get(os.ReadFile(path))(t), []byte(`"resume":{`), []byte(`"resume":{"ended":`+ended+`,`), 1)
	must.OK(t, os.WriteFile(path, file, 0o600))
}

// seen is an observer that notes what continues.
type seen struct{ servertest.Journal }

func (s *seen) note(words string) { fmt.Fprintln(s, words) }

func (*seen) Request(*jsonrpc.Request) func() { return nil }

func (s *seen) Turn(string) codexserver.TurnObserver {
	s.note("turn")
	return seenTurn{s}
}

type seenTurn struct{ *seen }

func (s seenTurn) Event(m protocol.EventMsg)                  { s.note(m.EventType()) }
func (seenTurn) Asked(*approval.Request)                      {}
func (seenTurn) Decided(*approval.Request, approval.Decision) {}
func (s seenTurn) End(error)                                  { s.note("ended") }

// TestContinuedIsObserved polls a task of a killed server. The next server's observer learns of the turn, unless it has
// ended too many servers.
func TestContinuedIsObserved(t *testing.T) {
	for ended, want := range map[string]string{"4": "turn\ntask_started\ntask_complete\nended\n", "5": ""} {
		bubble(t, ended, func(t *testing.T) { continued(t, ended, want) })
	}
}

func continued(t *testing.T, ended, want string) {
	left, id := killedTask(t, lostWork)
	endedServers(t, left, id, ended)
	next := heir{lostWork, make(chan struct{}), make(chan struct{}, 1)}
	close(next.may)
	s := &seen{}
	p := serveHome(t, next, left, s)
	if _, err := p.Send(t.Context(), "tasks/get", fmt.Sprintf(`"taskId":%q`, id)); err != nil {
		t.Error(err)
	}
	p.End()
	must.Equal(t, "the result", want, strings.ReplaceAll(s.String(), "session_configured\n", ""))
}

// TestTaskPolledWhileItIsTakenOver polls a task of a killed server while the next server, which is the last that may, takes
// it over. Every poll waits for that, and then has the state of the task here.
func TestTaskPolledWhileItIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left, id := killedTask(t, lostWork)
		endedServers(t, left, id, "4")
		next := heir{lostWork, make(chan struct{}), make(chan struct{}, 1)}
		p := serveHome(t, next, left, nil)
		defer p.End()
		const polls = 4
		got := make(chan any, polls)
		for range polls {
			go func() {
				raw, err := p.Send(t.Context(), "tasks/get", fmt.Sprintf(`"taskId":%q`, id))
				var r modern.GetTaskResult
				if err = errors.Join(err, modern.Decode(raw, &r)); err != nil {
					got <- err
					return
				}
				got <- r.Task
			}()
			<-time.After(time.Second)
		}
		<-next.resumed
		close(next.may)
		for range polls {
			switch task := (<-got).(type) {
			case *modern.WorkingTask:
			case *modern.CompletedTask:
				if words := task.StatusMessage; words == nil || *words != "done" {
					t.Errorf("it ended as %s", task.Result)
				}
			default:
				t.Errorf("%T: %[1]v", task)
			}
		}
	})
}

// TestStoppedTaskIsNotContinued stops a task, by a cancellation or by the answer to a question,
// and looks at its file before the turn has ended: the next server would not continue it.
func TestStoppedTaskIsNotContinued(t *testing.T) {
	for name, stop := range map[string]func(ctx context.Context, p *servertest.Client, id string) error{
		"cancelled": func(ctx context.Context, p *servertest.Client, id string) error {
			_, err := p.Send(ctx, "tasks/cancel", fmt.Sprintf(`"taskId":%q`, id))
			return err
		},
		"aborted": func(ctx context.Context, p *servertest.Client, id string) error {
			_, err := p.Send(ctx, "tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":{"q1":{"action":"cancel"}}`, id))
			return err
		},
	} {
		bubble(t, name, func(t *testing.T) {
			release := make(chan struct{})
			turn := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
				host.Ask(ctx, approval.Command{CallID: "1", Command: []string{"make"}, Cwd: "/work"})
				<-release
				return errors.New("released")
			})
			home := testenv.Home(t)
			p := serveHome(t, heir{Engine: turn}, home, nil)
			id := newTask(t, p, "go")
			synctest.Wait()
			resume := func() bool {
				file, _, err := taskfile.New(home, nil).Get(id)
				if err != nil {
					t.Error(err)
				}
				return file.Resume != nil
			}
			if !resume() {
				t.Error("nothing would be continued")
			}
			if name == "aborted" { // an answer that is sent before the question does not count
				must.OK(t, stop(t.Context(), p, id))
				synctest.Wait()
				must.Equal(t, "before the question was sent", true, resume())
			}
			getTask(t, p, id)
			must.OK(t, stop(t.Context(), p, id))
			synctest.Wait()
			if resume() {
				t.Error("the stopped task would be continued")
			}
			close(release)
			p.End()
		})
	}
}

// TestListen subscribes to a task: the client learns its state, each change of its status, its words
// once a second, and nothing about a task that it does not know.
func TestListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &codexserver.Options{Home: testenv.Home(t)}
		o.Changes.Read = new(false)
		c := servertest.Dial(t, codexserver.New(servertest.Script(), o), nil)
		meta := servertest.Capable(`"extensions":{"io.modelcontextprotocol/tasks":{}}`)
		var made struct{ TaskID string }
		if err := json.Unmarshal([]byte(c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"wait:10m say:hello wait:10m"},"_meta":`+meta+`}`)), &made); err != nil || made.TaskID == "" {
			t.Fatalf("%+v, %v", made, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c.Start(ctx, "subscriptions/listen", json.RawMessage(fmt.Sprintf(`{"notifications":{"taskIds":[%q,"unknown",%[1]q]},"_meta":%s}`, made.TaskID, meta)))
		synctest.Wait()
		if got := c.Received("notifications/subscriptions/acknowledged"); len(got) != 1 || strings.Count(string(got[0]), made.TaskID) != 1 || strings.Contains(string(got[0]), "unknown") {
			t.Errorf("acknowledged: %s", got)
		}
		seen := 0
		// told returns what was told within a time.
		told := func(within time.Duration) []json.RawMessage {
			<-time.After(within)
			synctest.Wait()
			all := c.Received("notifications/tasks")
			news := all[seen:]
			seen = len(all)
			return news
		}
		if got := told(0); len(got) != 1 || !strings.Contains(string(got[0]), `"status":"working"`) || !strings.Contains(string(got[0]), made.TaskID) {
			t.Errorf("at once: %s", got)
		}
		if got := told(9*time.Minute + 50*time.Second); len(got) > 590 {
			t.Errorf("%d notifications in 590 seconds", len(got))
		}
		if got := told(11500 * time.Millisecond); !strings.Contains(fmt.Sprintf("%s", got), "hello") {
			t.Error("the words of the turn are not told")
		}
		got := told(11 * time.Minute)
		has(t, "at the end", string(got[len(got)-1]), `"status":"completed"`, "hello")
		if got := told(time.Hour); len(got) > 0 {
			t.Errorf("after the end: %s", got)
		}
		cancel()
		synctest.Wait()
	})
}
