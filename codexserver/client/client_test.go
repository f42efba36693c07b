package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// everywhere runs a test with both eras of MCP and every way to start a server.
func everywhere(t *testing.T, f func(t *testing.T, start func(client.Options) *client.Client, modern bool)) {
	for place, options := range places() {
		for era, version := range map[string]string{"modern": "", "handshake": mcptypes.ProtocolVersion} {
			t.Run(place+"/"+era, func(t *testing.T) {
				t.Parallel()
				f(t, func(o client.Options) *client.Client {
					o.Protocol = version
					return start(t, options(t, o))
				}, version == "")
			})
		}
	}
}

func outcome(d elicit.Decision) func(context.Context, *client.Question) elicit.Outcome {
	return func(context.Context, *client.Question) elicit.Outcome {
		return elicit.Outcome{Decision: d, Feedback: "why"}
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, start func(client.Options) *client.Client, modern bool) {
		c := start(client.Options{Ask: outcome(elicit.Approved)})
		for prompt, want := range map[string]struct {
			Status protocol.TurnStatus
			Answer string
		}{
			"say:hello":          {Status: protocol.StatusCompleted, Answer: "hello"},
			"fail:broken":        {Status: protocol.StatusFailed, Answer: "broken"},
			"wait:500ms say:yes": {Status: protocol.StatusCompleted, Answer: "yes"},
		} {
			got, err := c.Run(t.Context(), client.Task{Prompt: prompt})
			if err != nil || got.Status != want.Status || got.Answer != want.Answer || got.ThreadID == "" || (got.Err() == nil) != (want.Status == protocol.StatusCompleted) {
				t.Errorf("%s: %+v, %v", prompt, got, err)
			}
			if long := strings.HasPrefix(prompt, "wait"); modern && long && !strings.HasPrefix(got.Task, got.ThreadID+".") {
				t.Errorf("%s: task %q of %s", prompt, got.Task, got.ThreadID)
			}
			again, err := c.Run(t.Context(), client.Task{Prompt: "say:again", Thread: got.ThreadID})
			if err != nil || again.ThreadID != got.ThreadID || again.Answer != "again" {
				t.Errorf("%s, continued: %+v, %v", prompt, again, err)
			}
		}
		r, err := c.Run(t.Context(), client.Task{Prompt: "say:x", Arguments: map[string]any{"sandbx": "none"}})
		if err != nil || r.Status != protocol.StatusFailed || !strings.Contains(r.Answer, "sandbx") {
			t.Errorf("a wrong argument: %+v, %v", r, err)
		}
	})
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, start func(client.Options) *client.Client, modern bool) {
		for name, tt := range map[string]struct {
			ask    func(context.Context, *client.Question) elicit.Outcome
			raw    func(context.Context, *client.Question) (json.RawMessage, error)
			status protocol.TurnStatus
			answer string // its beginning
		}{
			"approved":    {outcome(elicit.Approved), nil, protocol.StatusCompleted, "ls: approved"},
			"for session": {outcome(elicit.ApprovedForSession), nil, protocol.StatusCompleted, "ls: approved_for_session"},
			"denied":      {outcome(elicit.Denied), nil, protocol.StatusCompleted, "ls: denied"},
			"invalid":     {outcome("yes"), nil, protocol.StatusCompleted, "ls: denied"},
			"aborted":     {outcome(elicit.Abort), nil, protocol.StatusAborted, ""},
			"panic":       {func(context.Context, *client.Question) elicit.Outcome { panic("oh") }, nil, protocol.StatusCompleted, "ls: denied"},
			"no one":      {nil, nil, protocol.StatusCompleted, "ls: denied"},
			"raw": {nil, func(context.Context, *client.Question) (json.RawMessage, error) {
				return json.RawMessage(`{"action":"accept"}`), nil
			}, protocol.StatusCompleted, "ls: approved"},
			"raw nonsense": {nil, func(context.Context, *client.Question) (json.RawMessage, error) { return json.RawMessage(`7`), nil }, protocol.StatusCompleted, "ls: denied"},
			"raw error":    {nil, func(context.Context, *client.Question) (json.RawMessage, error) { return nil, errors.New("no") }, protocol.StatusCompleted, "ls: denied"},
		} {
			if name != "approved" && !strings.Contains(t.Name(), "in-process") {
				continue // what an answer is worth does not depend on the place
			}
			for _, watched := range []bool{false, true} {
				var mu sync.Mutex
				var asked []string
				o := client.Options{AskRaw: tt.raw}
				if tt.ask != nil {
					o.Ask = func(ctx context.Context, q *client.Question) elicit.Outcome {
						mu.Lock()
						asked = append(asked, strings.Join(q.Command, " "))
						mu.Unlock()
						if q.Kind != "exec" || q.Thread == "" || q.Message == "" {
							t.Errorf("%+v", q)
						}
						return tt.ask(ctx, q)
					}
				}
				task := client.Task{Prompt: "ls"}
				if watched {
					task.Event = func(client.Event) {}
				}
				c := start(o)
				r, err := c.Run(t.Context(), task)
				if err != nil || r.Status != tt.status || !strings.HasPrefix(r.Answer, tt.answer) {
					t.Errorf("%s: %+v, %v", name, r, err)
				}
				if tt.ask != nil && !slices.Equal(asked, []string{"ls"}) {
					t.Errorf("%s: asked %q", name, asked)
				}
				if someone := tt.ask != nil || tt.raw != nil; modern && someone && (r.Task != "") == watched {
					t.Errorf("%s: task %q", name, r.Task)
				}
			}
		}
	})
}

// TestEvents makes calls at once. Each gets its own events and result.
func TestEvents(t *testing.T) {
	everywhere(t, func(t *testing.T, start func(client.Options) *client.Client, modern bool) {
		c := start(client.Options{Ask: outcome(elicit.Approved)})
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				var types []string
				r, err := c.Run(t.Context(), client.Task{Prompt: fmt.Sprintf("say:%da ls say:%[1]db", i), Watch: client.Watch{Event: func(e client.Event) {
					types = append(types, e.Msg.EventType())
					if m, ok := e.Msg.(protocol.AgentMessage); ok && !strings.HasPrefix(m.Message, fmt.Sprint(i)) {
						t.Errorf("call %d got %q", i, m.Message)
					}
				}}})
				if want := fmt.Sprintf("%da, ls: approved, %[1]db", i); err != nil || r.Status != protocol.StatusCompleted || r.Answer != want {
					t.Errorf("%+v, %v, want %s", r, err, want)
				}
				want := []string{"session_configured", "task_started", "agent_message", "exec_approval_request", "agent_message", "agent_message", "task_complete"}
				must.Equal(t, "result", want, types)
			})
		}
		all.Wait()
	})
}

// TestDeafAsk has an Ask that does not notice the end of its context. Run does, in a call, in a
// round of one and in a task. Close waits for the Ask.
func TestDeafAsk(t *testing.T) {
	for name, tt := range map[string]struct {
		protocol string
		event    func(client.Event)
	}{"handshake": {mcptypes.ProtocolVersion, nil}, "round": {"", func(client.Event) {}}, "task": {"", nil}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const deaf = time.Minute
				asked := time.Time{}
				c := start(t, client.Options{
					Server: newServer(""), Protocol: tt.protocol,
					Ask: func(context.Context, *client.Question) elicit.Outcome {
						asked = time.Now()
						<-time.After(deaf)
						return elicit.Outcome{Decision: elicit.Approved}
					},
				})
				ctx, stop := context.WithTimeout(t.Context(), time.Second)
				defer stop()
				begun := time.Now()
				_, err := c.Run(ctx, client.Task{Prompt: "ls", Watch: client.Watch{Event: tt.event}})
				if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took > 1100*time.Millisecond {
					t.Errorf("after %v: %v", took, err)
				}
				must.Check(t, c.Close())
				if waited := time.Since(asked); waited < deaf {
					t.Errorf("Close returned %v after the question", waited)
				}
			})
		})
	}
}

// TestCloseOfAChild compares how children end with what Close reports.
func TestCloseOfAChild(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("it needs a shell and signals")
	}
	for name, tt := range map[string]struct{ script, want string }{
		"at the end of its input": {`"$0"`, "<nil>"},
		"not by itself":           {`"$0"; exec sleep 600`, "<nil>"},
		"with a failure":          {`"$0"; exit 3`, "exit status 3"},
		"by its own signal":       {`"$0"; kill -ABRT $$`, "signal: aborted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("/bin/sh", "-c", tt.script, os.Args[0])
			cmd.Env = child(testenv.Home(t)).Env
			c := must.Get(client.Start(t.Context(), &client.Options{Command: cmd}))(t)
			if err := c.Close(); !strings.Contains(fmt.Sprint(err), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	t.Run("killed by another", func(t *testing.T) {
		cmd := child(testenv.Home(t))
		first := true
		c, err := client.Start(t.Context(), &client.Options{Dial: func(context.Context) (jsonrpc.Transport, error) {
			if !first {
				return nil, client.ErrClosed
			}
			first = false
			return jsonrpc.Command(cmd, 0)
		}})
		must.OK(t, err)
		_ = cmd.Process.Kill()
		for err == nil {
			err = c.Call(t.Context(), "codex-models", nil, nil)
		}
		must.Fail(t, "Close", "signal: killed", c.Close())
	})
}
