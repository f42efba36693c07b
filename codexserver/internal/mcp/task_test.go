package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// pollers connects n clients that poll tasks to one server.
func pollers(t testing.TB, n int, e engine.Engine, o *codexserver.Options) []*servertest.Client {
	t.Helper()
	o.Home, o.Changes.Off = t.TempDir(), true
	server := codexserver.New(e, o)
	clients := make([]*servertest.Client, n)
	for i := range clients {
		clients[i] = servertest.Join(t, server, servertest.Host{Era: servertest.Polls, Answer: servertest.Never})
	}
	return clients
}

const polling = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

// newTask starts a turn that must become a task, and returns its id.
func newTask(t testing.TB, p *servertest.Client, prompt string) string {
	t.Helper()
	raw, err := p.Send(t.Context(), "tools/call", fmt.Sprintf(`"name":"codex","arguments":{"prompt":%q}`, prompt))
	if err != nil {
		t.Fatal(err)
	}
	var r modern.CreateTaskResult
	if err := modern.Decode(raw, &r); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return r.TaskID
}

func getTask(t testing.TB, p *servertest.Client, id string) modern.DetailedTask {
	t.Helper()
	raw, err := p.Send(t.Context(), "tasks/get", fmt.Sprintf(`"taskId":%q`, id))
	if err != nil {
		t.Fatal(err)
	}
	var r modern.GetTaskResult
	if err := modern.Decode(raw, &r); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return r.Task
}

// TestTasksAnsweredTwice answers the questions of 64 tasks from two connections. Each
// question gets four different answers at once. It is decided once, and the turn gets the
// decision that is recorded.
func TestTasksAnsweredTwice(t *testing.T) {
	const tasks = 64
	var asked atomic.Int64
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
		asked.Add(1)
		out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: protocol.TextOf(in), Command: []string{"touch", protocol.TextOf(in)}, Cwd: "/"})
		words := string(out.Decision)
		host.Emit(protocol.TaskComplete{LastAgentMessage: &words})
		return nil
	})
	var record servertest.Journal
	peers := pollers(t, 2, e, &codexserver.Options{Record: &record, Approvals: elicit.Options{Timeout: time.Minute}})
	var ids []string
	for i := range tasks {
		ids = append(ids, newTask(t, peers[i%2], fmt.Sprintf("file%d", i)))
	}
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	var answers sync.WaitGroup
	for _, id := range ids {
		for i := range 4 {
			action := []string{"accept", "decline"}[rand.IntN(2)]
			answers.Go(func() {
				_, err := peers[i%2].Send(t.Context(), "tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":{"q1":{"action":%q}}`, id, action))
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	answers.Wait()
	for _, id := range ids {
		var done *modern.CompletedTask
		for done == nil {
			switch task := getTask(t, peers[rand.IntN(2)], id).(type) {
			case *modern.CompletedTask:
				done = task
			case *modern.WorkingTask: // the turn is about to end
			default:
				t.Fatalf("the task is a %T", task)
			}
		}
		var result struct {
			Content []struct{ Text string }
		}
		if err := json.Unmarshal(done.Result, &result); err != nil {
			t.Fatal(err)
		}
		heard, _, _ := strings.Cut(result.Content[0].Text, "\n")
		thread, _, _ := strings.Cut(id, ".")
		lines := record.String()
		if n := strings.Count(lines, `"threadId":"`+thread+`"`); n != 1 {
			t.Errorf("the record has %d decisions of thread %s, want 1", n, thread)
		}
		_, line, _ := strings.Cut(lines, `"threadId":"`+thread+`"`)
		if line, _, _ = strings.Cut(line, "\n"); !strings.Contains(line, `"decision":"`+heard+`"`) {
			t.Errorf("the turn heard %q, the record has %s", heard, line)
		}
	}
	if n := asked.Load(); n != tasks {
		t.Errorf("%d turns ran, want %d", n, tasks)
	}
}
