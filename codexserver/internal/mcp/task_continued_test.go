package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/google/go-cmp/cmp"
)

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
	home := t.TempDir()
	p := serveHome(t, heir{Engine: e}, home, nil)
	defer p.End()
	id = newTask(t, p, "go")
	synctest.Wait()
	left = t.TempDir()
	if err := os.CopyFS(left, os.DirFS(home)); err != nil {
		t.Fatal(err)
	}
	return left, id
}

// seen is an observer that notes what continues.
type seen struct {
	mu    sync.Mutex
	words []string
}

func (s *seen) note(words string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.words = append(s.words, words)
}

func (s *seen) Begin(_ context.Context, r *codexserver.Request) codexserver.CallObserver {
	if r.RPC != nil { // the poll
		return nil
	}
	s.note("continues " + r.Continues)
	return s
}

func (s *seen) Turn(string, protocol.TokenUsage) codexserver.TurnObserver {
	s.note("turn")
	return seenTurn{s}
}

func (s *seen) End(error) { s.note("answered") }

type seenTurn struct{ *seen }

func (s seenTurn) Event(m protocol.EventMsg)                  { s.note(m.EventType()) }
func (seenTurn) Asked(*approval.Request)                      {}
func (seenTurn) Decided(*approval.Request, approval.Decision) {}
func (s seenTurn) End(error)                                  { s.note("ended") }

// TestContinuedIsObserved polls a task of a killed server. The next server's observer learns of the turn as of
// one whose call was answered with a task.
func TestContinuedIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left, id := killedTask(t, lostWork)
		next := heir{lostWork, make(chan struct{}), make(chan struct{}, 1)}
		close(next.may)
		s := &seen{}
		p := serveHome(t, next, left, s)
		if _, err := p.Send(t.Context(), "tasks/get", fmt.Sprintf(`"taskId":%q`, id)); err != nil {
			t.Error(err)
		}
		p.End()
		want := []string{"continues codex", "turn", "answered", "task_started", "task_complete", "ended"}
		if d := cmp.Diff(want, slices.DeleteFunc(s.words, func(w string) bool { return w == "session_configured" })); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

// TestTaskPolledWhileItIsTakenOver polls a task of a killed server while the next server takes
// it over. Every poll waits for that, and then has the state of the task here.
func TestTaskPolledWhileItIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left, id := killedTask(t, lostWork)
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

// TestAskingTaskIsTakenOver kills a server whose task asks. At first the task has another state
// in the next server, which continues it.
func TestAskingTaskIsTakenOver(t *testing.T) {
	asks := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "1", Command: []string{"make"}, Cwd: "/work"})
		return errors.New("released")
	})
	for range 20 { // it may take another way each time
		synctest.Test(t, func(t *testing.T) {
			left, id := killedTask(t, asks)
			next := heir{asks, make(chan struct{}), make(chan struct{}, 1)}
			close(next.may)
			p := serveHome(t, next, left, nil)
			defer p.End()
			task := getTask(t, p, id)
			for range 10 {
				if _, done := task.(*modern.CompletedTask); done {
					return
				}
				<-time.After(time.Second)
				task = getTask(t, p, id)
			}
			t.Errorf("it did not end: %+v", task)
		})
	}
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
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				turn := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
					host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "1", Command: []string{"make"}, Cwd: "/work"})
					<-release
					return errors.New("released")
				})
				home := t.TempDir()
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
				if err := stop(t.Context(), p, id); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if resume() {
					t.Error("the stopped task would be continued")
				}
				close(release)
				p.End()
			})
		})
	}
}
