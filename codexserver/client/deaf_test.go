package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// TestDeafAsk has an Ask that does not notice the end of its context. Run does, in a call, in a
// round of one and in a task. Close waits for the Ask.
func TestDeafAsk(t *testing.T) {
	for name, tt := range map[string]struct {
		protocol string
		event    func(client.Event)
	}{
		"handshake": {mcptypes.ProtocolVersion, nil}, "round": {"", func(client.Event) {}}, "task": {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const deaf = time.Minute
				asked := time.Time{}
				c, err := client.Start(t.Context(), &client.Options{
					Server: newServer("", script("")), Protocol: tt.protocol,
					Ask: func(context.Context, *client.Question) elicit.Outcome {
						asked = time.Now()
						<-time.After(deaf)
						return elicit.Outcome{Decision: elicit.Approved}
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithTimeout(t.Context(), time.Second)
				defer stop()
				begun := time.Now()
				_, err = c.Run(ctx, client.Task{Prompt: "ls", Watch: client.Watch{Event: tt.event}})
				if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took > 1100*time.Millisecond {
					t.Errorf("after %v: %v", took, err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if waited := time.Since(asked); waited < deaf {
					t.Errorf("Close returned %v after the question", waited)
				}
			})
		})
	}
}

// interrupted runs a turn that is interrupted by the end of its context, and returns its thread.
func interrupted(t *testing.T, c *client.Client) (thread string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, err := c.Run(ctx, client.Task{Prompt: "wait:1h", Watch: client.Watch{Event: func(e client.Event) {
		if e.Msg.EventType() == "task_started" {
			stop()
		}
	}}})
	if !errors.Is(err, context.Canceled) || r.ThreadID == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	return r.ThreadID
}

// needed returns the ids that Wait needs: none but over a URL, where clients share the server.
func needed(t *testing.T, b client.Result) []string {
	if strings.Contains(t.Name(), "url") {
		return []string{b.ThreadID}
	}
	return nil
}

// TestWaitAfterInterrupt interrupts a turn by the end of its context. Its method has returned the
// error, so Wait returns only the turn in the background.
func TestWaitAfterInterrupt(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, start func(client.Options) *client.Client, modern bool) {
		c := start(client.Options{})
		thread := interrupted(t, c)
		b, err := c.Background(t.Context(), client.Task{Prompt: "wait:100ms say:b"})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := c.Wait(t.Context(), needed(t, b)...)
		if err != nil || len(rows) != 1 || rows[0].ThreadID != b.ThreadID || rows[0].Status != protocol.StatusCompleted {
			t.Errorf("%+v, %v", rows, err)
		}
		if rows, err = c.Wait(t.Context(), thread); err != nil || len(rows) != 1 || rows[0].Status != protocol.StatusAborted {
			t.Errorf("asked for by its id: %+v, %v", rows, err)
		}
	})
}

// TestTurnAfterInterrupt runs the next turn of a conversation whose last one was interrupted by the
// end of its context, in the background. Wait returns its result.
func TestTurnAfterInterrupt(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, start func(client.Options) *client.Client, modern bool) {
		c := start(client.Options{})
		thread := interrupted(t, c)
		b, err := c.Background(t.Context(), client.Task{Thread: thread, Prompt: "wait:100ms say:b"})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := c.Wait(t.Context(), needed(t, b)...)
		if err != nil || len(rows) != 1 || rows[0].ThreadID != thread || rows[0].Status != protocol.StatusCompleted || rows[0].Answer != "b" {
			t.Errorf("%+v, %v", rows, err)
		}
	})
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
			cmd.Env = child(t.TempDir()).Env
			c, err := client.Start(t.Context(), &client.Options{Command: cmd})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Close(); !strings.Contains(fmt.Sprint(err), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	t.Run("killed by another", func(t *testing.T) {
		cmd := child(t.TempDir())
		first := true
		c, err := client.Start(t.Context(), &client.Options{Dial: func(context.Context) (jsonrpc.Transport, error) {
			if !first {
				return nil, client.ErrClosed
			}
			first = false
			return jsonrpc.Command(cmd, 0)
		}})
		if err != nil {
			t.Fatal(err)
		}
		_ = cmd.Process.Kill()
		for err == nil {
			_, err = c.Call(t.Context(), "codex-models", nil)
		}
		if err := c.Close(); err == nil || !strings.Contains(err.Error(), "signal: killed") {
			t.Errorf("Close: %v", err)
		}
	})
}
