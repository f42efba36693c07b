package client_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// killer starts servers in processes of their own, and kills the newest one.
type killer struct {
	home string

	mu     sync.Mutex
	newest *exec.Cmd
}

func (k *killer) dial(context.Context) (jsonrpc.Transport, error) {
	cmd := child(k.home)
	t, err := jsonrpc.Command(cmd, 0)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.newest = cmd
	return killed{t}, nil
}

// killed is a transport of a server that may be killed, which is no error.
type killed struct{ jsonrpc.Transport }

func (k killed) Close() error {
	_ = k.Transport.Close()
	return nil
}

// kill kills the newest server.
func (k *killer) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = k.newest.Process.Kill()
}

// how says in a word how a task ended.
func how(r client.Result, err error) string {
	var lost *client.LostError
	switch {
	case errors.As(err, &lost) && lost.Thread != "":
		return "lost thread"
	case err != nil:
		return err.Error()
	case strings.HasPrefix(r.Answer, "The server ended while this task ran."):
		return "server ended"
	}
	return fmt.Sprintf("%+v", r)
}

// TestResume closes a client while its task runs, and asks another one for the result.
func TestResume(t *testing.T) {
	t.Parallel() // it polls
	o := places()["url"](t, client.Options{})
	first := start(t, o)
	ids := make(chan string, 1)
	left := make(chan error, 1)
	go func() {
		_, err := first.Run(t.Context(), client.Task{Prompt: "wait:300ms say:later", Watch: client.Watch{Started: func(id string) { ids <- id }}})
		left <- err
	}()
	id := <-ids
	must.Check(t, first.Close())
	if err := <-left; !errors.Is(err, client.ErrClosed) {
		t.Errorf("Run: %v", err)
	}
	if _, err := first.Run(t.Context(), client.Task{Prompt: "say:x"}); !errors.Is(err, client.ErrClosed) {
		t.Errorf("Run after Close: %v", err)
	}
	second := start(t, o)
	r, err := second.Resume(t.Context(), id, client.Watch{})
	if err != nil || r.Status != protocol.StatusCompleted || r.Answer != "later" || r.Task != id {
		t.Errorf("%+v, %v", r, err)
	}
	var lost *client.LostError
	if _, err := second.Resume(t.Context(), "no-such-task", client.Watch{}); !errors.As(err, &lost) || lost.Task != "no-such-task" {
		t.Errorf("an unknown task: %v", err)
	}
}

// TestResumeAfterTheServer asks for a task whose server was killed. A call without a task is lost. Neither is begun
// again: its question is asked once.
func TestResumeAfterTheServer(t *testing.T) {
	t.Parallel() // it waits
	for version, want := range map[string]string{"": "server ended", mcptypes.ProtocolVersion: "lost thread"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			k := &killer{home: testenv.Home(t)}
			var questions atomic.Int32
			first := start(t, client.Options{Dial: k.dial, Protocol: version, Ask: func(ctx context.Context, _ *client.Question) elicit.Outcome {
				questions.Add(1)
				k.kill()
				return elicit.Outcome{Decision: elicit.Approved}
			}})
			var id string
			r, err := first.Run(t.Context(), client.Task{Prompt: "rm", Watch: client.Watch{Started: func(task string) { id = task }}})
			if got := how(r, err); got != want || r.Task != id || questions.Load() != 1 {
				t.Fatalf("%s, after %d questions", got, questions.Load())
			}
			if id == "" {
				return
			}
			r, err = start(t, client.Options{Dial: k.dial}).Resume(t.Context(), id, client.Watch{})
			if got := how(r, err); got != want || r.ThreadID == "" {
				t.Error(got)
			}
		})
	}
}

// TestCancelledContext ends the context of a call in each state. The turn is interrupted, and the conversation can be continued.
func TestCancelledContext(t *testing.T) {
	enough := errors.New("enough")
	everywhere(t, func(t *testing.T, start func(client.Options) *client.Client, modern bool) {
		for _, prompt := range []string{"wait:1h", "rm"} {
			for _, events := range []bool{false, true} {
				ctx, cancel := context.WithCancelCause(t.Context())
				c := start(client.Options{Ask: func(ctx context.Context, _ *client.Question) elicit.Outcome {
					cancel(enough)
					<-ctx.Done()
					return elicit.Outcome{Decision: elicit.Approved}
				}})
				task := client.Task{Prompt: prompt}
				if events {
					task.Event = func(e client.Event) {
						if e.Msg.EventType() == "task_started" && prompt == "wait:1h" {
							cancel(enough)
						}
					}
				} else if prompt == "wait:1h" {
					if !modern {
						continue // nothing says that the turn runs
					}
					task.Started = func(string) { cancel(enough) }
				}
				r, err := c.Run(ctx, task)
				if !errors.Is(err, enough) || r.ThreadID == "" {
					t.Errorf("%s: %+v, %v", prompt, r, err)
				}
				next, err := c.Run(t.Context(), client.Task{Thread: r.ThreadID, Prompt: "say:on"}) // waits for the turn before it
				if err != nil || next.Answer != "on" {
					t.Errorf("%s: then %+v, %v", prompt, next, err)
				}
				cancel(nil)
			}
		}
	})
}

// TestFunctionPanics interrupts the turn, and the panic reaches the caller.
func TestFunctionPanics(t *testing.T) {
	everywhere(t, func(t *testing.T, start func(client.Options) *client.Client, modern bool) {
		c := start(client.Options{})
		for name, w := range map[string]client.Watch{
			"Event":   {Event: func(client.Event) { panic("oh") }},
			"Started": {Started: func(string) { panic("oh") }},
		} {
			if name == "Started" && !modern {
				continue
			}
			var p any
			func() {
				defer func() { p = recover() }()
				_, _ = c.Run(t.Context(), client.Task{Prompt: "wait:1h", Watch: w})
			}()
			if p != "oh" {
				t.Errorf("%s: %v", name, p)
			}
			if r, err := c.Run(t.Context(), client.Task{Prompt: "say:x"}); err != nil || r.Answer != "x" {
				t.Errorf("%s: then %+v, %v", name, r, err)
			}
		}
	})
}

// TestBrokenHTTP breaks the connections to a server over HTTP. A task is waited for, and a call
// with events is lost; its error has the conversation.
func TestBrokenHTTP(t *testing.T) {
	t.Parallel() // it waits
	s := serveHTTP(t, testenv.Home(t))
	var breaks sync.WaitGroup
	defer breaks.Wait()
	c := start(t, client.Options{URL: s.URL, Token: "secret"})
	r, err := c.Run(t.Context(), client.Task{Prompt: "wait:300ms say:done", Watch: client.Watch{Started: func(string) {
		breaks.Go(func() {
			for range 5 {
				<-time.After(30 * time.Millisecond)
				s.CloseClientConnections()
			}
		})
	}}})
	if err != nil || r.Answer != "done" {
		t.Errorf("a task: %+v, %v", r, err)
	}
	breaks.Wait() // the next call is broken when it has a conversation, and not before
	var lost *client.LostError
	_, err = c.Run(t.Context(), client.Task{Prompt: "wait:1h", Watch: client.Watch{Event: func(e client.Event) {
		if e.Msg.EventType() == "task_started" {
			breaks.Go(s.CloseClientConnections)
		}
	}}})
	if !errors.As(err, &lost) || lost.Thread == "" {
		t.Fatalf("a call: %v", err)
	}
	if r, err := c.Run(t.Context(), client.Task{Thread: lost.Thread, Prompt: "say:on"}); err != nil || r.Answer != "on" {
		t.Errorf("then %+v, %v", r, err)
	}
}
