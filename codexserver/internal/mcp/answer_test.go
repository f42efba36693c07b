package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

const (
	cancels = "tasks/cancel"
	goCall  = `"name":"codex","arguments":{"prompt":"go"}`
	rounds  = 2  // in which an order would be seen that is left to chance
	more    = 20 // answers after the first
)

// orders are two answers to one question, and the decision if the first counts.
var orders = []struct{ first, second, want string }{
	{declines, accepts, "denied"},
	{accepts, declines, "approved"},
	{`{"action":"cancel"}`, accepts, "abort"},
	{cancels, accepts, "abort"}, // of a task
}

// asks serves turns that ask for a command, and send the decision to heard. Their calls become tasks at once, or never.
func asks(t *testing.T, heard chan<- string, tasks bool) *codexserver.Server {
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		heard <- string(host.Ask(ctx, approval.Command{CallID: "c", Command: []string{"touch", "a"}, Cwd: "/"}).Decision)
		return nil
	})
	o := &codexserver.Options{Home: testenv.Home(t), Tasks: codexserver.TaskOptions{Grace: -1}}
	if o.Changes.Read = new(false); !tasks {
		o.Tasks.Mode = setting.TasksNever
	}
	return codexserver.New(e, o)
}

// askedCall is the answer to goCall: a task, or a question that a retry answers.
type askedCall struct{ TaskID, RequestState string }

// about returns a request that answers the question, or cancels the task.
func (a askedCall) about(answer string) (method, members string) {
	switch {
	case answer == cancels:
		return cancels, fmt.Sprintf(`"taskId":%q`, a.TaskID)
	case a.TaskID != "":
		return "tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":{"q1":%s}`, a.TaskID, answer)
	}
	return "tools/call", fmt.Sprintf(`%s,"requestState":%q,"inputResponses":{"q1":%s}`, goCall, a.RequestState, answer)
}

// line returns a request of a client that polls.
func line(id int, method, members string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,%s}}`, id, method, members, polling)
}

// writeAll writes messages at once, so that the server reads them together.
func writeAll(t *testing.T, to jsonrpc.Transport, lines ...string) {
	t.Helper()
	var all [][]byte
	for _, line := range lines {
		all = append(all, []byte(line))
	}
	must.OK(t, to.Write(t.Context(), all))
}

// until returns the next line with a part.
func until(t *testing.T, from jsonrpc.Transport, part string) string {
	t.Helper()
	for {
		line, err := from.Read(t.Context())
		if err != nil {
			t.Fatalf("no %s: %v", part, err)
		}
		if strings.Contains(string(line), part) {
			return string(line)
		}
	}
}

// TestFirstAnswerCounts sends many messages about a question in one write: responses to its request,
// retries of its call with one state, of which all but the first are refused, or requests about its task.
func TestFirstAnswerCounts(t *testing.T) {
	for _, way := range []string{"response", "retry", "task"} {
		for _, tt := range orders {
			for range rounds {
				if tt.first == cancels && way != "task" || t.Failed() {
					break
				}
				synctest.Test(t, func(t *testing.T) {
					heard := make(chan string, 1)
					ours := servertest.Lines(t, asks(t, heard, way == "task"))
					var asked struct {
						ID     json.RawMessage
						Result askedCall
					}
					question := `"id":1,`
					if way == "response" {
						writeAll(t, ours, hello)
						servertest.Read(t, ours, "serverInfo") // the session's version is known
						writeAll(t, ours, oneJob)
						question = `"elicitation/create"`
					} else {
						writeAll(t, ours, line(1, "tools/call", goCall))
					}
					must.OK(t, json.Unmarshal([]byte(until(t, ours, question)), &asked))
					if synctest.Wait(); way == "task" { // its question is open, and sent
						writeAll(t, ours, line(2, "tasks/get", fmt.Sprintf(`"taskId":%q`, asked.Result.TaskID)))
						until(t, ours, `"id":2,`)
					}
					answer := func(id int, words string) string {
						if way == "response" {
							return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, asked.ID, words)
						}
						method, members := asked.Result.about(words)
						return line(id, method, members)
					}
					answers := []string{answer(10, tt.first)}
					for i := range more {
						answers = append(answers, answer(11+i, tt.second))
					}
					writeAll(t, ours, answers...)
					must.Equal(t, fmt.Sprintf("%s: %s, then %s", way, tt.first, tt.second), tt.want, <-heard)
					for i := 0; way == "retry" && i <= more; i++ {
						got := servertest.Read(t, ours, "")
						refused := strings.Contains(got, `"error":{"code":-32602`) && strings.Contains(got, `"/requestState"`)
						if refused == strings.Contains(got, `"id":10,"result":`) {
							t.Errorf("a retry: %s", got)
						}
					}
				})
			}
		}
	}
}

// TestConnectionLost loses the connection of a call when its question is about to be sent, and after the answer to it.
// The request ends, and with it the turn.
func TestConnectionLost(t *testing.T) {
	for _, answered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := &servertest.Worker{}
			p := codexserver.New(w.Engine(), &codexserver.Options{Changes: codexserver.ChangeOptions{Read: new(false)}}).Principal(t.Context(), "ann")
			defer p.Close()
			call := `"name":"codex","arguments":{"prompt":"git wait:1h"}`
			if answered {
				raw, err := arrive(t, p, servertest.Polls, true).Send(t.Context(), "tools/call", call)
				var asked askedCall
				must.OK(t, err, json.Unmarshal(raw, &asked))
				call += fmt.Sprintf(`,"requestState":%q,"inputResponses":{"q1":%s}`, asked.RequestState, accepts)
			}
			ours, theirs := jsonrpc.Pipe()
			ended := make(chan error, 1)
			ctx, lose := context.WithCancel(t.Context())
			go func() { ended <- p.Exchange(ctx, theirs) }()
			writeAll(t, ours, line(1, "tools/call", call))
			synctest.Wait()
			pass(10 * time.Millisecond)
			lose()
			if err := <-ended; err != nil || !w.Ended() || strings.Contains(w.Did(), "git") != answered {
				t.Errorf("%v, the turn has ended: %t, after %s", err, w.Ended(), w.Did())
			}
		})
	}
}

// TestPending has a turn with many open questions, its own and those of MCP servers. No more are
// open than the limit of pending ones says.
func TestPending(t *testing.T) {
	const most, questions = 3, 10
	for era, version := range map[string]string{"2026-07-28": "", "a handshake": mcptypes.ProtocolVersion} {
		bubble(t, era, func(t *testing.T) {
			turn := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
				f, err := approval.ServerQuestion("toy", json.RawMessage(`{"message":"m"}`))
				if err != nil {
					return err
				}
				var all sync.WaitGroup
				for range questions {
					all.Go(func() {
						if answer, err := host.Elicit(ctx, f); err != nil || string(answer) != `{"action":"accept","content":{}}` {
							t.Errorf("%s, %v", answer, err)
						}
					})
					all.Go(func() {
						if out := host.Ask(ctx, approval.Command{CallID: "c", Command: []string{"make"}, Cwd: "/"}); out.Decision != elicit.Approved {
							t.Errorf("%+v", out)
						}
					})
				}
				all.Wait()
				return nil
			})
			var mu sync.Mutex
			open, asked := 0, 0
			c, err := client.Start(t.Context(), &client.Options{
				Server:   codexserver.New(turn, &codexserver.Options{Approvals: elicit.Options{MaxPending: most}, Changes: codexserver.ChangeOptions{Read: new(false)}}),
				Protocol: version,
				Ask: func(context.Context, *client.Question) elicit.Outcome {
					mu.Lock()
					asked++
					if open++; open > most {
						t.Errorf("%d questions are open", open)
					}
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					defer mu.Unlock()
					open--
					return elicit.Outcome{Decision: elicit.Approved}
				},
			})
			must.OK(t, err)
			if r, err := c.Run(t.Context(), client.Task{Prompt: "p"}); err != nil || r.Status != protocol.StatusCompleted || asked != 2*questions {
				t.Errorf("%+v, %v, %d asked", r, err, asked)
			}
			must.OK(t, c.Close())
		})
	}
}

// guests serves the clients of a shared server. A client has left when its input has ended, although its turns run on.
type guests struct {
	*codexserver.Server
	serving sync.WaitGroup
}

// Serve implements [servertest.Server].
func (g *guests) Serve(ctx context.Context, t jsonrpc.Transport) error {
	left, end := make(chan struct{}), make(chan error, 1)
	g.serving.Go(func() { end <- g.ServeFrom(ctx, t, engine.Origin{Folder: "/"}, func() { close(left) }) })
	select {
	case <-left:
		return nil
	case err := <-end:
		return err
	}
}

// exchanges serves the requests of a principal, as over HTTP.
type exchanges struct{ *codexserver.Principal }

// Serve implements [servertest.Server].
func (e exchanges) Serve(ctx context.Context, t jsonrpc.Transport) error { return e.Exchange(ctx, t) }

// arrive connects a client of a principal, or of a shared server. With forms it accepts every question.
func arrive(t *testing.T, p servertest.Server, era servertest.Era, forms bool) *servertest.Client {
	t.Helper()
	h := servertest.Host{Era: era}
	if forms {
		h.Answer = servertest.Say(servertest.Accept)
	}
	if ann, ok := p.(*codexserver.Principal); ok && era != servertest.Handshake {
		p = exchanges{ann}
	}
	return servertest.Join(t, p, h)
}

// begin begins a turn that no call waits for, and returns its thread and its task, if any.
func begin(t *testing.T, c *servertest.Client, era servertest.Era, prompt string) (thread, task string) {
	t.Helper()
	raw, err := c.Send(t.Context(), "tools/call", fmt.Sprintf(`"name":"codex","arguments":{"prompt":%q,"background":%t}`, prompt, era != servertest.Polls))
	var r struct{ TaskID string }
	if err = errors.Join(err, json.Unmarshal(raw, &r)); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	if r.TaskID != "" {
		thread, _, _ = strings.Cut(r.TaskID, ".")
		return thread, r.TaskID
	}
	return servertest.ThreadOf(t, string(raw)), ""
}

// TestComingBack plays what docs/wire.md says of coming back: a client begins a turn that asks and leaves. The
// next client of the same principal, or of the same shared server, finds it by every way, and answers the question. It does not
// matter of which era the two are, and whether the first can show questions.
func TestComingBack(t *testing.T) {
	t.Parallel()
	for _, first := range []servertest.Era{servertest.Handshake, servertest.Rounds, servertest.Polls} {
		for _, shows := range []bool{true, false} {
			for _, second := range []servertest.Era{servertest.Handshake, servertest.Rounds} {
				for _, how := range []string{"codex-wait", "codex-reply", "tasks/update", "codex-interrupt", "tasks/cancel"} {
					if strings.HasPrefix(how, "tasks/") && first != servertest.Polls {
						continue
					}
					for _, shared := range []bool{false, true} {
						t.Run(fmt.Sprintf("%s, forms %v, %s, %s, shared %v", first, shows, second, how, shared), func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) { comeBack(t, first, shows, second, how, shared) })
						})
					}
				}
			}
		}
	}
}

func comeBack(t *testing.T, first servertest.Era, shows bool, second servertest.Era, how string, shared bool) {
	s := codexserver.New(&servertest.Engine{}, &codexserver.Options{Home: testenv.Home(t), Changes: codexserver.ChangeOptions{Read: new(false)}, Tasks: codexserver.TaskOptions{Grace: -1}})
	var p servertest.Server
	if shared {
		g := &guests{Server: s}
		defer g.serving.Wait()
		p = g
	} else {
		ann := s.Principal(t.Context(), "ann")
		defer ann.Close()
		p = ann
	}
	var a *servertest.Client
	if shows && first == servertest.Handshake { // it has the question, and does not answer it
		a = servertest.Connect(t, p, servertest.Never)
	} else {
		a = arrive(t, p, first, shows)
	}
	thread, task := begin(t, a, first, "touch say:done")
	synctest.Wait()
	a.End()
	synctest.Wait()
	b := arrive(t, p, second, true)
	defer b.End()
	has(t, "codex-list", b.Use(t.Context(), "codex-list", `{"cwd":"*"}`), strings.ToUpper(thread), "waiting for approval of `touch`")
	has(t, "codex-show", b.Use(t.Context(), "codex-show", fmt.Sprintf(`{"threadId":%q,"what":"transcript"}`, thread)), "touch say:done")
	poll := `"taskId":"` + task + `","_meta":` + servertest.Capable(`"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}`)
	if task != "" {
		has(t, "tasks/get", b.Ask(t, "tasks/get", "{"+poll+"}"), `"status":"input_required"`, "touch")
	}
	want := "touch: approved, done"
	switch how {
	case "codex-reply":
		want = "approved by client"
		has(t, "codex-reply", b.Use(t.Context(), "codex-reply", fmt.Sprintf(`{"threadId":%q,"prompt":"say:next"}`, thread)), "next")
	case "codex-interrupt":
		want = `"status":"aborted"`
		has(t, "codex-interrupt", b.Use(t.Context(), "codex-interrupt", fmt.Sprintf(`{"threadId":%q}`, thread)), "Interrupted.")
	case "tasks/update":
		b.Ask(t, "tasks/update", "{"+poll+`,"inputResponses":{"q1":{"action":"accept"}}}`)
	case "tasks/cancel":
		want = `"status":"aborted"`
		b.Ask(t, "tasks/cancel", "{"+poll+"}")
	}
	got := b.Use(t.Context(), "codex-wait", fmt.Sprintf(`{"threadIds":[%q]}`, thread))
	if how == "codex-reply" {
		got += b.Use(t.Context(), "codex-show", fmt.Sprintf(`{"threadId":%q,"what":"transcript"}`, thread))
	}
	if !strings.Contains(got, want) {
		t.Errorf("in the end: %s", got)
	}
	if task != "" {
		synctest.Wait()
		if got := b.Ask(t, "tasks/get", "{"+poll+"}"); !strings.Contains(got, `"status":"completed"`) && !strings.Contains(got, `"status":"cancelled"`) {
			t.Errorf("tasks/get in the end: %s", got)
		}
	}
}

// TestStrangersDoNotComeBack checks that another principal, and a client that may not approve, get no question.
func TestStrangersDoNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := codexserver.New(&servertest.Engine{}, &codexserver.Options{Home: testenv.Home(t), Changes: codexserver.ChangeOptions{Read: new(false)}})
		ann, bob := s.Principal(t.Context(), "ann"), s.Principal(t.Context(), "bob")
		defer ann.Close()
		defer bob.Close()
		a := arrive(t, ann, servertest.Handshake, false)
		thread, _ := begin(t, a, servertest.Handshake, "touch")
		wait := fmt.Sprintf(`{"threadIds":[%q],"seconds":1}`, thread)
		for name, v := range map[string]*servertest.Client{
			"another principal":              arrive(t, bob, servertest.Handshake, true),
			"another principal, by requests": arrive(t, bob, servertest.Rounds, true),
			"without the right to approve":   servertest.Connect(t, unasked{ann}, servertest.Say(servertest.Accept)),
		} {
			got := v.Use(t.Context(), "codex-wait", wait)
			stranger := strings.HasPrefix(name, "another")
			if strings.Contains(got, "approved") || strings.Contains(got, "unknown") != stranger || len(v.Received("elicitation/create")) > 0 {
				t.Errorf("%s: %s", name, got)
			}
			if got := v.Use(t.Context(), "codex-show", fmt.Sprintf(`{"threadId":%q,"what":"transcript"}`, thread)); stranger == strings.Contains(got, "touch") {
				t.Errorf("%s: %s", name, got)
			}
			v.End()
		}
		has(t, "ann", arrive(t, ann, servertest.Rounds, true).Use(t.Context(), "codex-wait", wait), "touch: approved")
		a.End()
	})
}

// unasked serves clients of a principal that may not approve.
type unasked struct{ *codexserver.Principal }

func (u unasked) Serve(ctx context.Context, t jsonrpc.Transport) error {
	return u.Principal.Serve(approval.WithoutQuestions(ctx), t)
}

// TestLastClientDeclines checks that a client of a shared server that has left is none that may answer
// in place of another: a refusal at once by the last client that is there counts.
func TestLastClientDeclines(t *testing.T) {
	quick := servertest.After(20*time.Millisecond, servertest.Decline)
	for _, began := range []bool{true, false} { // the client that has left began the turn, or waited for it
		synctest.Test(t, func(t *testing.T) {
			g := &guests{Server: codexserver.New(&servertest.Engine{}, &codexserver.Options{Home: testenv.Home(t), Changes: codexserver.ChangeOptions{Read: new(false)}})}
			defer g.serving.Wait()
			a := servertest.Connect(t, g, servertest.Never)
			var b *servertest.Client
			var thread string
			if began {
				thread, _ = begin(t, a, servertest.Handshake, "touch say:done")
				synctest.Wait()
				a.End()
				synctest.Wait()
				b = servertest.Connect(t, g, quick)
			} else {
				b = servertest.Connect(t, g, quick)
				thread, _ = begin(t, b, servertest.Handshake, "sleep:1m touch say:done")
				a.Use(t.Context(), "codex-wait", fmt.Sprintf(`{"threadIds":[%q],"seconds":1}`, thread))
				a.End()
				synctest.Wait()
			}
			defer b.End()
			start := time.Now()
			if got := b.Use(t.Context(), "codex-wait", fmt.Sprintf(`{"threadIds":[%q]}`, thread)); !strings.Contains(got, "touch: denied, done") || time.Since(start) > 2*time.Minute {
				t.Errorf("began %t: after %s: %s", began, time.Since(start), got)
			}
		})
	}
}

// TestHostThatAnswersByItself has a host accept sooner than a person can, in each way of calling. Beside a page the
// person there decides, and the result says so. Without one nothing runs.
func TestHostThatAnswersByItself(t *testing.T) {
	for _, era := range []servertest.Era{servertest.Handshake, servertest.Rounds, servertest.Polls} {
		for page, want := range map[string]string{servertest.Accept: "git: approved", servertest.Decline: "git: denied", "": "git: denied"} {
			synctest.Test(t, func(t *testing.T) {
				o := &codexserver.Options{Home: testenv.Home(t), Asking: setting.Asking{Where: setting.WhereBoth}}
				o.Changes.Read = new(false)
				if page != "" {
					o.Desk = &servertest.Desk{Called: approval.ByPage, Answer: servertest.After(5*time.Second, page)}
				}
				w := &servertest.Worker{}
				host := servertest.Host{Era: era, Answer: servertest.After(5*time.Millisecond, servertest.Accept)}
				got := servertest.Join(t, codexserver.New(w.Engine(), o), host).Use(t.Context(), "codex", promptOf("git"))
				told := strings.Contains(got, "after the question. That did not count; the decision came from the approvals page.")
				if ran := strings.Contains(w.Did(), "git"); !strings.Contains(got, want) || told != (page != "") || ran != (page == servertest.Accept) {
					t.Errorf("%s, the page says %q: ran %t: %s", era, page, ran, got)
				}
			})
		}
	}
}
