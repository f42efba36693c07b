package mcp_test

import (
	"context"
	"encoding/json"
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
	g.serving.Go(func() {
		end <- g.ServeFrom(ctx, t, engine.Origin{Folder: "/"}, func() { close(left) })
	})
	select {
	case <-left:
		return nil
	case err := <-end:
		return err
	}
}

// guest is a client of a principal, or of a shared server, in one of the eras.
type guest struct {
	t      *testing.T
	p      servertest.Server
	legacy *servertest.Client // nil in the new era
	wire   *servertest.Client // in the new era, of a shared server
	meta   string             // in the new era
}

// arrive connects a client. With forms it accepts every question.
func arrive(t *testing.T, p servertest.Server, era string, forms bool) *guest {
	v := &guest{t: t, p: p}
	var answer servertest.Answer
	capabilities := ""
	if forms {
		answer, capabilities = servertest.Say(servertest.Accept), `"elicitation":{}`
	}
	switch era {
	case "session":
		v.legacy = servertest.Connect(t, p, answer)
	case "task":
		if forms {
			capabilities += ","
		}
		capabilities += `"extensions":{"io.modelcontextprotocol/tasks":{}}`
	}
	v.meta = `"_meta":` + servertest.Capable(capabilities)
	return v
}

// leave ends the client's connection.
func (v *guest) leave() {
	if v.legacy != nil {
		v.legacy.End()
	}
	if v.wire != nil {
		v.wire.End()
	}
}

// call calls a tool, answers its questions, and returns the text of its result.
func (v *guest) call(tool, arguments string) string {
	v.t.Helper()
	if v.legacy != nil {
		return v.legacy.CallTool(v.t, tool, arguments)
	}
	params := fmt.Sprintf(`"name":%q,"arguments":%s,%s`, tool, arguments, v.meta)
	raw := v.send("tools/call", params)
	for {
		var r struct {
			RequestState  string
			InputRequests map[string]json.RawMessage
		}
		if err := json.Unmarshal([]byte(raw), &r); err != nil || len(r.InputRequests) == 0 {
			return raw
		}
		var answers []string
		for key := range r.InputRequests {
			answers = append(answers, fmt.Sprintf(`%q:{"action":"accept"}`, key))
		}
		raw = v.send("tools/call", fmt.Sprintf(`%s,"requestState":%q,"inputResponses":{%s}`, params, r.RequestState, strings.Join(answers, ",")))
	}
}

func (v *guest) send(method, params string) string {
	v.t.Helper()
	var raw json.RawMessage
	var err error
	if _, shared := v.p.(*guests); shared {
		if v.wire == nil {
			v.wire = servertest.Dial(v.t, v.p, nil)
		}
		err = v.wire.Call(v.t.Context(), method, json.RawMessage("{"+params+"}"), &raw)
	} else {
		raw, err = answerOver(v.t, v.p.(*codexserver.Principal), method, "{"+params+"}")
	}
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// begin begins a turn that no call waits for, and returns its thread and its task, if any.
func (v *guest) begin(prompt string) (thread, task string) {
	v.t.Helper()
	arguments := fmt.Sprintf(`{"prompt":%q,"background":true}`, prompt)
	if strings.Contains(v.meta, "tasks") {
		arguments = fmt.Sprintf(`{"prompt":%q}`, prompt)
	}
	raw := v.call("codex", arguments)
	var r struct{ TaskID string }
	if err := json.Unmarshal([]byte(raw), &r); err != nil {
		v.t.Fatalf("%s: %v", raw, err)
	}
	if r.TaskID != "" {
		thread, _, _ = strings.Cut(r.TaskID, ".")
		return thread, r.TaskID
	}
	return servertest.ThreadOf(v.t, raw), ""
}

// TestComingBack plays the table of docs/reference/wire.md: a client begins a turn that asks and leaves. The
// next client of the same principal, or of the same shared server, finds it by every way, and answers the question. It does not
// matter of which era the two are, and whether the first can show questions.
func TestComingBack(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"session", "request", "task"} {
		for _, shows := range []bool{true, false} {
			for _, second := range []string{"session", "request"} {
				for _, how := range []string{"codex-wait", "codex-reply", "tasks/update", "codex-interrupt", "tasks/cancel"} {
					if strings.HasPrefix(how, "tasks/") && first != "task" {
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

func comeBack(t *testing.T, first string, shows bool, second, how string, shared bool) {
	s := codexserver.New(&servertest.Engine{}, &codexserver.Options{Home: t.TempDir(), Changes: codexserver.ChangeOptions{Off: true}, Tasks: codexserver.TaskOptions{Grace: -1}})
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
	a := arrive(t, p, first, false)
	if shows {
		a.leave()
		a = arrive(t, p, first, true)
		if a.legacy != nil { // it has the question, and does not answer it
			a.leave()
			a.legacy = servertest.Connect(t, p, servertest.Never)
		}
	}
	thread, task := a.begin("touch say:done")
	synctest.Wait()
	a.leave()
	synctest.Wait()
	b := arrive(t, p, second, true)
	defer b.leave()
	if got := b.call("codex-list", `{}`); !strings.Contains(got, strings.ToUpper(thread)) || !strings.Contains(got, "waiting for approval of `touch`") {
		t.Errorf("codex-list: %s", got)
	}
	if got := b.call("codex-show", fmt.Sprintf(`{"threadId":%q,"what":"transcript"}`, thread)); !strings.Contains(got, "touch say:done") {
		t.Errorf("codex-show: %s", got)
	}
	poll := `"taskId":"` + task + `","_meta":` + servertest.Capable(`"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}`)
	if task != "" {
		if got := b.send("tasks/get", poll); !strings.Contains(got, `"status":"input_required"`) || !strings.Contains(got, "touch") {
			t.Errorf("tasks/get: %s", got)
		}
	}
	want := "touch: approved, done"
	switch how {
	case "codex-reply":
		want = "approved by client"
		if got := b.call("codex-reply", fmt.Sprintf(`{"threadId":%q,"prompt":"say:next"}`, thread)); !strings.Contains(got, "next") {
			t.Errorf("codex-reply: %s", got)
		}
	case "codex-interrupt":
		want = `"status":"aborted"`
		if got := b.call("codex-interrupt", fmt.Sprintf(`{"threadId":%q}`, thread)); !strings.Contains(got, "Interrupted.") {
			t.Errorf("codex-interrupt: %s", got)
		}
	case "tasks/update":
		b.send("tasks/update", poll+`,"inputResponses":{"q1":{"action":"accept"}}`)
	case "tasks/cancel":
		want = `"status":"aborted"`
		b.send("tasks/cancel", poll)
	}
	got := b.call("codex-wait", fmt.Sprintf(`{"threadIds":[%q]}`, thread))
	if how == "codex-reply" {
		got += b.call("codex-show", fmt.Sprintf(`{"threadId":%q,"what":"transcript"}`, thread))
	}
	if !strings.Contains(got, want) {
		t.Errorf("in the end: %s", got)
	}
	if task != "" {
		synctest.Wait()
		if got := b.send("tasks/get", poll); !strings.Contains(got, `"status":"completed"`) && !strings.Contains(got, `"status":"cancelled"`) {
			t.Errorf("tasks/get in the end: %s", got)
		}
	}
}

// TestNobodyComesBack checks that a question for which nobody comes is denied in time, and that the
// configuration decides where it says what happens if a client cannot be asked.
func TestNobodyComesBack(t *testing.T) {
	for _, tt := range []struct {
		set  string
		want string
	}{
		{"", "timeout"}, {"deny", "unsupported"},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := &codexserver.Options{Home: t.TempDir(), Changes: codexserver.ChangeOptions{Off: true}}
			o.Approvals.OnUnsupported = "deny"
			if tt.set == "" {
				o.Approvals.OnUnsupported = ""
			}
			p := codexserver.New(&servertest.Engine{}, o).Principal(t.Context(), "ann")
			defer p.Close()
			a := arrive(t, p, "session", false)
			thread, _ := a.begin("touch")
			a.leave()
			pass(o.Approvals.Timeout + 20*60e9)
			b := arrive(t, p, "session", true)
			defer b.leave()
			if got := b.call("codex-wait", fmt.Sprintf(`{"threadIds":[%q]}`, thread)); !strings.Contains(got, tt.want) {
				t.Errorf("%q: %s", tt.set, got)
			}
		})
	}
}

// TestStrangersDoNotComeBack checks that another principal, and a client that may not approve, get
// no question.
func TestStrangersDoNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := codexserver.New(&servertest.Engine{}, &codexserver.Options{Home: t.TempDir(), Changes: codexserver.ChangeOptions{Off: true}})
		ann, bob := s.Principal(t.Context(), "ann"), s.Principal(t.Context(), "bob")
		defer ann.Close()
		defer bob.Close()
		a := arrive(t, ann, "session", false)
		thread, _ := a.begin("touch")
		wait := fmt.Sprintf(`{"threadIds":[%q],"seconds":1}`, thread)
		for name, v := range map[string]*guest{
			"another principal":                 arrive(t, bob, "session", true),
			"another principal, by requests":    arrive(t, bob, "request", true),
			"without the right to approve":      {t: t, p: ann, legacy: servertest.Connect(t, unasked{ann}, servertest.Say(servertest.Accept))},
			"without the right, and with forms": {t: t, p: ann, legacy: servertest.Connect(t, unasked{ann}, servertest.Say(servertest.Accept))},
		} {
			got := v.call("codex-wait", wait)
			stranger := strings.HasPrefix(name, "another")
			if strings.Contains(got, "approved") || strings.Contains(got, "unknown") != stranger || v.legacy != nil && len(v.legacy.Received("elicitation/create")) > 0 {
				t.Errorf("%s: %s", name, got)
			}
			if got := v.call("codex-show", fmt.Sprintf(`{"threadId":%q,"what":"transcript"}`, thread)); stranger == strings.Contains(got, "touch") {
				t.Errorf("%s: %s", name, got)
			}
			v.leave()
		}
		if got := arrive(t, ann, "request", true).call("codex-wait", wait); !strings.Contains(got, "touch: approved") {
			t.Errorf("ann: %s", got)
		}
		a.leave()
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
			g := &guests{Server: codexserver.New(&servertest.Engine{}, &codexserver.Options{Home: t.TempDir(), Changes: codexserver.ChangeOptions{Off: true}})}
			defer g.serving.Wait()
			a := &guest{t: t, p: g, legacy: servertest.Connect(t, g, servertest.Never)}
			b := &guest{t: t, p: g}
			var thread string
			if began {
				thread, _ = a.begin("touch say:done")
				synctest.Wait()
				a.leave()
				synctest.Wait()
				b.legacy = servertest.Connect(t, g, quick)
			} else {
				b.legacy = servertest.Connect(t, g, quick)
				thread, _ = b.begin("sleep:1m touch say:done")
				a.call("codex-wait", fmt.Sprintf(`{"threadIds":[%q],"seconds":1}`, thread))
				a.leave()
				synctest.Wait()
			}
			defer b.leave()
			start := time.Now()
			if got := b.call("codex-wait", fmt.Sprintf(`{"threadIds":[%q]}`, thread)); !strings.Contains(got, "touch: denied, done") || time.Since(start) > 2*time.Minute {
				t.Errorf("began %t: after %s: %s", began, time.Since(start), got)
			}
		})
	}
}
