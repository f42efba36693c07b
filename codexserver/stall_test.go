package codexserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// mute is an engine whose model is silent for 7 minutes, waits 10 minutes for a command, is
// silent for 6, and then answers. The engine emits an event of its own each minute.
var mute = engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
	wait := func(minutes int) {
		for range minutes {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
			}
			host.Emit(protocol.StreamError{Message: "trying again"})
		}
	}
	wait(7)
	host.Emit(protocol.ExecCommandBegin{CallID: "1", Command: []string{"make"}, Cwd: "/"})
	wait(10)
	host.Emit(protocol.ExecCommandEnd{CallID: "1"})
	wait(6)
	host.Emit(protocol.AgentMessage{Message: "done"})
	return context.Cause(ctx)
})

// stuckAt returns the minutes of such a turn in which it is reported as stuck.
func stuckAt(t *testing.T, words func(minute int) string) (minutes []int) {
	t.Helper()
	for minute := range 23 {
		<-time.After(30 * time.Second)
		text := words(minute)
		if is := strings.Contains(text, "stuck: the model has been silent"); is {
			minutes = append(minutes, minute)
			if !strings.Contains(text, "; wait, or stop it with codex-interrupt") {
				t.Errorf("minute %d: %s", minute, text)
			}
		}
		<-time.After(30 * time.Second)
	}
	return minutes
}

func TestStuckInTheBackground(t *testing.T) {
	for _, tt := range []struct {
		stall time.Duration
		want  []int
	}{
		{0, []int{5, 6, 22}},
		{3 * time.Minute, []int{3, 4, 5, 6, 20, 21, 22}},
		{-1, nil},
		{7 * time.Minute, nil},
	} {
		t.Run(tt.stall.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connectWith(t, &full{TurnFunc: mute}, &codexserver.Options{Stall: tt.stall})
				c.ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p","background":true}}`)
				got := stuckAt(t, func(minute int) string {
					waited := c.ask(t, "tools/call", `{"name":"codex-wait","arguments":{"seconds":0}}`)
					if !strings.Contains(waited, `"status":"running"`) {
						t.Errorf("minute %d: %s", minute, waited)
					}
					return waited
				})
				if !slices.Equal(got, tt.want) {
					t.Errorf("stuck in the minutes %v, want %v", got, tt.want)
				}
				<-time.After(time.Second)
				if got := c.ask(t, "tools/call", `{"name":"codex-wait","arguments":{}}`); !strings.Contains(got, `"content":"done"`) {
					t.Errorf("the end: %s", got)
				}
			})
		})
	}
}

// library lists the conversations that it has started.
type library struct{ *full }

func (e library) List(context.Context, protocol.ListConversationsParams) (*protocol.ListConversationsResult, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := &protocol.ListConversationsResult{}
	for _, id := range e.made {
		r.Items = append(r.Items, protocol.ConversationSummary{ConversationID: strings.ToUpper(id), Preview: "p"})
	}
	return r, nil
}

func TestStuckInAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connectWith(t, library{&full{TurnFunc: mute}}, nil)
		c.ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p","background":true}}`)
		synctest.Wait()
		list := func(int) string { return c.ask(t, "tools/call", `{"name":"codex-list","arguments":{}}`) }
		if got := list(0); !strings.Contains(got, `"preview":"p","status":"running","doing":"thinking"`) {
			t.Errorf("at the beginning: %s", got)
		}
		if got, want := stuckAt(t, list), []int{5, 6, 22}; !slices.Equal(got, want) {
			t.Errorf("stuck in the minutes %v, want %v", got, want)
		}
		<-time.After(time.Second)
		if got := list(0); strings.Contains(got, "status") {
			t.Errorf("at the end: %s", got)
		}
	})
}

func TestStuckInProgress(t *testing.T) {
	want := []int{5, 6, 22}
	t.Run("with a session", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := connectRPC(t, mute)
			c.ask(t, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
			call := c.Start(t.Context(), "tools/call", json.RawMessage(`{"name":"codex","arguments":{"prompt":"p"},"_meta":{"progressToken":"t"}}`))
			got := stuckAt(t, func(int) string {
				synctest.Wait()
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.progress
			})
			if !slices.Equal(got, want) {
				t.Errorf("stuck in the minutes %v, want %v", got, want)
			}
			if err := call.Result(new(json.RawMessage)); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("without one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := connectModern(t, mute, nil)
			call := c.start("tools/call", toolCall("codex", `{"prompt":"p"}`)...)
			got := stuckAt(t, func(int) string {
				synctest.Wait()
				c.mu.Lock()
				defer c.mu.Unlock()
				return string(c.notes[len(c.notes)-1].params)
			})
			if !slices.Equal(got, want) {
				t.Errorf("stuck in the minutes %v, want %v", got, want)
			}
			call.wait()
		})
	})
}

// TestStuckTask reads the status message of a task, by a request and from its file.
func TestStuckTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := t.TempDir()
		c := connectModern(t, mute, &codexserver.Options{Home: home})
		c.capabilities = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
		var task modern.CreateTaskResult
		if err := modern.Decode(c.start("tools/call", toolCall("codex", `{"prompt":"p"}`)...).wait().raw, &task); err != nil {
			t.Fatal(err)
		}
		<-time.After(5*time.Minute + 10*time.Second)
		get := func() string { return string(c.start("tasks/get", fmt.Sprintf(`"taskId":%q`, task.TaskId)).wait().raw) }
		if got := get(); !strings.Contains(got, `"statusMessage":"stuck: the model has been silent for 5m11s; wait, or stop it with codex-interrupt"`) {
			t.Errorf("tasks/get: %s", got)
		}
		files, err := filepath.Glob(filepath.Join(home, "codex-mcp", "tasks", "*"))
		if err != nil {
			t.Fatal(err)
		}
		var kept strings.Builder
		for _, file := range files {
			b, _ := os.ReadFile(file) // except the folder of locks, which cannot be read
			kept.Write(b)
		}
		if !strings.Contains(kept.String(), "stuck: the model has been silent; wait, or stop it with codex-interrupt") {
			t.Errorf("the files %q: %s", files, kept.String())
		}
		<-time.After(2 * time.Minute)
		if got := get(); strings.Contains(got, "stuck") {
			t.Errorf("while a command runs: %s", got)
		}
	})
}
