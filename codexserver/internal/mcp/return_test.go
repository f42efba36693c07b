package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// guests serves the clients of a shared server. A client has left when its input has ended,
// although its turns run on.
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
	s := codexserver.New(&servertest.Engine{}, &codexserver.Options{Home: testenv.Home(t), Changes: codexserver.ChangeOptions{Off: true}, Tasks: codexserver.TaskOptions{Grace: -1}})
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
	if got := b.Use(t.Context(), "codex-list", `{}`); !strings.Contains(got, strings.ToUpper(thread)) || !strings.Contains(got, "waiting for approval of `touch`") {
		t.Errorf("codex-list: %s", got)
	}
	if got := b.Use(t.Context(), "codex-show", fmt.Sprintf(`{"threadId":%q,"what":"transcript"}`, thread)); !strings.Contains(got, "touch say:done") {
		t.Errorf("codex-show: %s", got)
	}
	poll := `"taskId":"` + task + `","_meta":` + servertest.Capable(`"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}`)
	if task != "" {
		if got := b.Ask(t, "tasks/get", "{"+poll+"}"); !strings.Contains(got, `"status":"input_required"`) || !strings.Contains(got, "touch") {
			t.Errorf("tasks/get: %s", got)
		}
	}
	want := "touch: approved, done"
	switch how {
	case "codex-reply":
		want = "approved by client"
		if got := b.Use(t.Context(), "codex-reply", fmt.Sprintf(`{"threadId":%q,"prompt":"say:next"}`, thread)); !strings.Contains(got, "next") {
			t.Errorf("codex-reply: %s", got)
		}
	case "codex-interrupt":
		want = `"status":"aborted"`
		if got := b.Use(t.Context(), "codex-interrupt", fmt.Sprintf(`{"threadId":%q}`, thread)); !strings.Contains(got, "Interrupted.") {
			t.Errorf("codex-interrupt: %s", got)
		}
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

// TestStrangersDoNotComeBack checks that another principal, and a client that may not approve, get
// no question.
func TestStrangersDoNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := codexserver.New(&servertest.Engine{}, &codexserver.Options{Home: testenv.Home(t), Changes: codexserver.ChangeOptions{Off: true}})
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
		if got := arrive(t, ann, servertest.Rounds, true).Use(t.Context(), "codex-wait", wait); !strings.Contains(got, "touch: approved") {
			t.Errorf("ann: %s", got)
		}
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
			g := &guests{Server: codexserver.New(&servertest.Engine{}, &codexserver.Options{Home: testenv.Home(t), Changes: codexserver.ChangeOptions{Off: true}})}
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
				o.Changes.Off = true
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
