package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/google/go-cmp/cmp"
)

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
		t.Run(fmt.Sprint("killed ", killed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				home := t.TempDir()
				first := serveHome(t, lostWork, home, nil)
				id := newTask(t, first, "go")
				synctest.Wait()
				left := home
				if killed {
					left = t.TempDir() // as the file was at this moment, with a lock that no process holds
					if err := os.CopyFS(left, os.DirFS(home)); err != nil {
						t.Fatal(err)
					}
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
				if err := json.Unmarshal(task.Result, &result); err != nil {
					t.Fatal(err)
				}
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
				if diff := cmp.Diff(got, inText); diff != "" {
					t.Errorf("in the text (-structured +text):\n%s", diff)
				}
				want := did{
					ThreadID: thread, Status: "aborted",
					Changes:  []change{{"/work/new", "add"}},
					Commands: []command{{"go vet", new(3)}, {"go test", nil}},
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if words := task.StatusMessage; killed && (words == nil || !strings.Contains(*words, "2 commands")) {
					t.Errorf("the status message is %v", words)
				}
			})
		})
	}
}
