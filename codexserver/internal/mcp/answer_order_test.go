package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// order is two answers to one question, and the decision if the first counts.
type order struct{ first, second, want string }

var orders = []order{
	{declines, accepts, "denied"},
	{accepts, declines, "approved"},
	{`{"action":"cancel"}`, accepts, "abort"},
}

const (
	cancels = "tasks/cancel"
	rounds  = 20 // in which an order would be seen that is left to chance
)

// TestFirstMessageAboutATaskCounts sends two messages about a task's question in one write: two
// answers, or a cancellation and an answer.
func TestFirstMessageAboutATaskCounts(t *testing.T) {
	rows := append(slices.Clone(orders), order{cancels, accepts, "abort"})
	for _, tt := range rows {
		for range rounds {
			synctest.Test(t, func(t *testing.T) {
				c, heard := askedTask(t)
				c.writeAll(c.about(10, tt.first), c.about(11, tt.second))
				if got := <-heard; got != tt.want {
					t.Fatalf("%s, then %s: %s", tt.first, tt.second, got)
				}
			})
			if t.Failed() {
				return
			}
		}
	}
}

// taskClient is a client with a task that asks.
type taskClient struct {
	t         *testing.T
	transport jsonrpc.Transport
	task      string
}

// hears is an engine whose turns ask for a command, and send the decision to heard.
func hears(heard chan<- string) engine.Engine {
	return engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		heard <- string(host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "c", Command: []string{"touch", "a"}, Cwd: "/"}).Decision)
		return nil
	})
}

// askedTask starts a task whose question q1 is open. The turn sends its decision to heard.
func askedTask(t *testing.T) (c *taskClient, heard chan string) {
	heard = make(chan string, 1)
	o := &codexserver.Options{Home: t.TempDir(), Changes: codexserver.ChangeOptions{Off: true}, Tasks: codexserver.TaskOptions{Grace: -1}}
	c = &taskClient{t: t, transport: servertest.Lines(t, codexserver.New(hears(heard), o))}
	c.writeAll(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"go"},` + polling + `}}`)
	line := servertest.Read(t, c.transport, "taskId")
	var m struct{ Result modern.CreateTaskResult }
	if err := json.Unmarshal([]byte(line), &m); err != nil || m.Result.TaskID == "" {
		t.Fatalf("%s: %v", line, err)
	}
	c.task = m.Result.TaskID
	synctest.Wait()
	return c, heard
}

// about is a tasks/update with an answer to q1, or a tasks/cancel.
func (c *taskClient) about(id int, answer string) string {
	if answer == cancels {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"taskId":%q,%s}}`, id, cancels, c.task, polling)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tasks/update","params":{"taskId":%q,"inputResponses":{"q1":%s},%s}}`, id, c.task, answer, polling)
}

func (c *taskClient) writeAll(lines ...string) { writeAll(c.t, c.transport, lines...) }

// writeAll writes messages at once, so that the server reads them together.
func writeAll(t *testing.T, to jsonrpc.Transport, lines ...string) {
	t.Helper()
	var all [][]byte
	for _, line := range lines {
		all = append(all, []byte(line))
	}
	if err := to.Write(t.Context(), all); err != nil {
		t.Fatal(err)
	}
}

// TestFirstRetryCounts sends two retries of a call with one state in one write. The second
// is refused.
func TestFirstRetryCounts(t *testing.T) {
	for _, tt := range orders[:2] {
		for range rounds {
			play(t, nil, func(t *testing.T, c *modernClient, w *servertest.Worker) {
				state := c.state(c.codex("git"))
				c.held = &[]string{}
				one := c.round("codex", promptOf("git"), state, `{"q1":`+tt.first+`}`)
				two := c.round("codex", promptOf("git"), state, `{"q1":`+tt.second+`}`)
				writeAll(t, c.transport, *c.held...)
				if got := one.wait().text(); got != "git: "+tt.want {
					t.Errorf("%s, then %s: %s", tt.first, tt.second, got)
				}
				if a := two.wait(); !refusedState(a) {
					t.Errorf("the second retry: %s", a.text())
				}
			})
			if t.Failed() {
				return
			}
		}
	}
}

// TestFirstResponseCounts sends two responses to one elicitation/create in one write.
func TestFirstResponseCounts(t *testing.T) {
	for _, tt := range orders {
		for range rounds {
			synctest.Test(t, func(t *testing.T) {
				heard := make(chan string, 1)
				ours := servertest.Lines(t, codexserver.New(hears(heard), nil))
				writeAll(t, ours, hello)
				servertest.Read(t, ours, "serverInfo") // the session's version is known
				writeAll(t, ours, oneJob)
				for asked := ""; asked == ""; {
					line, err := ours.Read(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					var m struct {
						ID     json.RawMessage
						Method string
					}
					if err := json.Unmarshal(line, &m); err != nil {
						t.Fatal(err)
					}
					if m.Method == "elicitation/create" {
						asked = string(m.ID)
						writeAll(t, ours,
							`{"jsonrpc":"2.0","id":`+asked+`,"result":`+tt.first+`}`,
							`{"jsonrpc":"2.0","id":`+asked+`,"result":`+tt.second+`}`)
					}
				}
				if got := <-heard; got != tt.want {
					t.Errorf("%s, then %s: %s", tt.first, tt.second, got)
				}
			})
			if t.Failed() {
				return
			}
		}
	}
}

// answerOver sends a request of a principal over a connection of its own, as an HTTP request
// does, and returns the answer.
func answerOver(t *testing.T, p *codexserver.Principal, method, params string) (json.RawMessage, error) {
	ours, theirs := jsonrpc.Pipe()
	peer := jsonrpc.NewPeer(ours, nil, nil)
	var all sync.WaitGroup
	all.Go(func() { _ = peer.Run(context.Background()) })
	all.Go(func() {
		if err := p.Exchange(t.Context(), theirs); err != nil {
			t.Error(err)
		}
	})
	defer all.Wait()
	defer peer.Close()
	var raw json.RawMessage
	err := peer.Call(t.Context(), method, json.RawMessage(params), &raw)
	return raw, err
}

// TestFirstOfTwoConnectionsCounts answers a question twice, over two connections.
func TestFirstOfTwoConnectionsCounts(t *testing.T) {
	for _, tt := range []struct{ first, second, want string }{
		{declines, accepts, "denied"},
		{accepts, declines, "approved"},
	} {
		for _, retry := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				heard := make(chan string, 1)
				e := hears(heard)
				s := codexserver.New(e, &codexserver.Options{Home: t.TempDir(), Changes: codexserver.ChangeOptions{Off: true}, Tasks: codexserver.TaskOptions{Grace: -1, Never: retry}})
				p := s.Principal(t.Context(), "ann")
				defer p.Close()
				const call = `"name":"codex","arguments":{"prompt":"go"},`
				raw, err := answerOver(t, p, "tools/call", `{`+call+polling+`}`)
				if err != nil {
					t.Fatal(err)
				}
				var asked struct{ TaskID, RequestState string }
				if err := json.Unmarshal(raw, &asked); err != nil || asked.TaskID == "" && asked.RequestState == "" {
					t.Fatalf("%s, %v", raw, err)
				}
				send := func(answer string) {
					if retry {
						_, err := answerOver(t, p, "tools/call", fmt.Sprintf(`{%s"requestState":%q,"inputResponses":{"q1":%s},%s}`, call, asked.RequestState, answer, polling))
						if err != nil && !strings.Contains(err.Error(), "requestState") {
							t.Error(err)
						}
						return
					}
					if _, err := answerOver(t, p, "tasks/update", fmt.Sprintf(`{"taskId":%q,"inputResponses":{"q1":%s},%s}`, asked.TaskID, answer, polling)); err != nil {
						t.Error(err)
					}
				}
				synctest.Wait() // the question of a task is open
				var all sync.WaitGroup
				all.Go(func() { send(tt.first) })
				synctest.Wait()
				all.Go(func() { send(tt.second) })
				if got := <-heard; got != tt.want {
					t.Errorf("%s, then %s (retry %v): %s", tt.first, tt.second, retry, got)
				}
				all.Wait()
			})
		}
	}
}

// TestConnectionLost loses the connection of a call when its question is about to be sent, and after the answer to it.
// The request ends, and with it the turn.
func TestConnectionLost(t *testing.T) {
	for _, answered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := &servertest.Worker{}
			p := codexserver.New(w.Engine(), &codexserver.Options{Changes: codexserver.ChangeOptions{Off: true}}).Principal(t.Context(), "ann")
			defer p.Close()
			call := `"name":"codex","arguments":{"prompt":"git wait:1h"},` + polling
			if answered {
				raw, err := answerOver(t, p, "tools/call", `{`+call+`}`)
				var asked struct{ RequestState string }
				if err := errors.Join(err, json.Unmarshal(raw, &asked)); err != nil {
					t.Fatal(err)
				}
				call += fmt.Sprintf(`,"requestState":%q,"inputResponses":{"q1":%s}`, asked.RequestState, accepts)
			}
			ours, theirs := jsonrpc.Pipe()
			ended := make(chan error, 1)
			ctx, lose := context.WithCancel(t.Context())
			go func() { ended <- p.Exchange(ctx, theirs) }()
			writeAll(t, ours, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+call+`}}`)
			synctest.Wait()
			pass(10 * time.Millisecond)
			lose()
			if err := <-ended; err != nil || !w.Ended() || strings.Contains(w.Did(), "git") != answered {
				t.Errorf("%v, the turn has ended: %t, after %s", err, w.Ended(), w.Did())
			}
		})
	}
}
