package mcptool_test

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
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
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
				c := servertest.Dial(t, codexserver.New(&servertest.Engine{Turn: mute}, &codexserver.Options{Calls: codexserver.CallOptions{Stall: tt.stall}}), nil)
				c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p","background":true}}`)
				got := stuckAt(t, func(minute int) string {
					waited := c.Ask(t, "tools/call", `{"name":"codex-wait","arguments":{"seconds":0}}`)
					if !strings.Contains(waited, `"status":"running"`) {
						t.Errorf("minute %d: %s", minute, waited)
					}
					return waited
				})
				if !slices.Equal(got, tt.want) {
					t.Errorf("stuck in the minutes %v, want %v", got, tt.want)
				}
				<-time.After(time.Second)
				if got := c.Ask(t, "tools/call", `{"name":"codex-wait","arguments":{}}`); !strings.Contains(got, `"content":"done"`) {
					t.Errorf("the end: %s", got)
				}
			})
		})
	}
}

func TestStuckInAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(&servertest.Engine{Turn: mute}, nil), nil)
		c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p","background":true}}`)
		synctest.Wait()
		list := func(int) string { return c.Ask(t, "tools/call", `{"name":"codex-list","arguments":{}}`) }
		if got := list(0); !strings.Contains(got, `"preview":"p","status":"running","doing":"thinking"`) {
			t.Errorf("at the beginning: %s", got)
		}
		if got, want := stuckAt(t, list), []int{5, 6, 22}; !slices.Equal(got, want) {
			t.Errorf("stuck in the minutes %v, want %v", got, want)
		}
		<-time.After(time.Second)
		if got := list(0); !strings.Contains(got, `"status":"completed","doing":"done"`) {
			t.Errorf("at the end: %s", got)
		}
	})
}

func TestStuckInProgress(t *testing.T) {
	want := []int{5, 6, 22}
	for era, meta := range map[string]string{"with a session": `{"progressToken":"t"}`, "without one": servertest.MetaWith(`"progressToken":"t"`)} {
		t.Run(era, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := servertest.Dial(t, codexserver.New(mute, nil), nil)
				call := c.Start(t.Context(), "tools/call", json.RawMessage(`{"name":"codex","arguments":{"prompt":"p"},"_meta":`+meta+`}`))
				got := stuckAt(t, func(int) string {
					synctest.Wait()
					all := c.Received("notifications/progress")
					return string(all[len(all)-1])
				})
				if !slices.Equal(got, want) {
					t.Errorf("stuck in the minutes %v, want %v", got, want)
				}
				if err := call.Result(new(json.RawMessage)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestNotStuck has a model that sends the arguments of a call for 20 minutes, without an event.
func TestNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := engine.TurnFunc(func(_ context.Context, host engine.Host, _ []protocol.InputItem) error {
			for range 20 {
				<-time.After(time.Minute)
				engine.Alive(host)
			}
			return nil
		})
		c := servertest.Dial(t, codexserver.New(writes, nil), nil)
		c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p","background":true}}`)
		<-time.After(19*time.Minute + 30*time.Second)
		if got := c.Ask(t, "tools/call", `{"name":"codex-wait","arguments":{"seconds":0}}`); strings.Contains(got, "stuck") || !strings.Contains(got, "running") {
			t.Errorf("after 19 minutes: %s", got)
		}
	})
}

// TestStuckTask reads the status message of a task, by a request and from its file.
func TestStuckTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := t.TempDir()
		c := servertest.Dial(t, codexserver.New(mute, &codexserver.Options{Home: home}), nil)
		meta := servertest.Capable(`"extensions":{"io.modelcontextprotocol/tasks":{}}`)
		var task modern.CreateTaskResult
		if err := modern.Decode([]byte(c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"},"_meta":`+meta+`}`)), &task); err != nil {
			t.Fatal(err)
		}
		<-time.After(5*time.Minute + 10*time.Second)
		get := func() string {
			return c.Ask(t, "tasks/get", fmt.Sprintf(`{"taskId":%q,"_meta":%s}`, task.TaskID, meta))
		}
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
