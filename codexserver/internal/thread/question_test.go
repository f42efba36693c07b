package thread_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

// TestPersonIsAskedEachTime has a rule that asks, or an engine that wants a person or an approval of one patch: an approval
// does not last, no lasting rule is offered, and no setting takes the place of a person. For the engine that
// wants a person no program does either, and the question says so.
func TestPersonIsAskedEachTime(t *testing.T) {
	for _, tt := range []struct {
		command, answer string
		want            elicit.Decision
	}{
		{"go", servertest.ForSession, elicit.ApprovedForSession},
		{"ssh", servertest.ForSession, elicit.Approved},
		{"ssh", `{"action":"accept","content":{"decision":"approved_always"}}`, elicit.Denied},
		{"patch", servertest.ForSession, elicit.ApprovedForSession},
		{"patch once", servertest.ForSession, elicit.Approved},
		{"go", "", elicit.Denied}, {"ssh", "", elicit.Denied},
		{"human", servertest.ForSession, elicit.Denied}, // at once
		{"human later", servertest.ForSession, elicit.Approved},
		{"human later", `{"action":"accept","content":{"decision":"approved_always"}}`, elicit.Denied},
		{"human later", servertest.Decline, elicit.Denied}, {"human", "", elicit.Denied},
	} {
		synctest.Test(t, func(t *testing.T) {
			human, patch := strings.HasPrefix(tt.command, "human"), strings.HasPrefix(tt.command, "patch")
			e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
				var out elicit.Outcome
				if patch {
					out = host.Ask(ctx, approval.Patch{CallID: "c", Cwd: "/work", Once: tt.command == "patch once", Changes: map[string]protocol.FileChange{
						"/etc/passwd": {Add: &protocol.FileContent{Content: "x"}},
					}, Links: map[string]string{"/etc/passwd": "/work/notes.txt"}})
				} else {
					out = host.Ask(ctx, approval.Command{CallID: "c", Cwd: "/work", Command: []string{tt.command, "x"}, Human: human, Confinable: true})
				}
				host.Emit(protocol.AgentMessage{Message: string(out.Decision)})
				return nil
			})
			o := &codexserver.Options{Rules: approval.Rules{Ask: [][]string{{"ssh"}}}, Approvals: elicit.Options{Schema: elicit.FormDecision}}
			var says servertest.Answer
			if tt.answer != "" {
				says = servertest.Say(tt.answer)
				if strings.HasSuffix(tt.command, " later") {
					says = servertest.After(time.Second, tt.answer)
				}
			}
			c := servertest.Connect(t, codexserver.New(e, o), says)
			got, err := c.Tool(t.Context(), "codex", map[string]any{"prompt": "p"})
			if err != nil || !strings.HasPrefix(got.Content, string(tt.want)+"\n") && got.Content != string(tt.want) {
				t.Errorf("%s, %q: %q, %v, want %s", tt.command, tt.answer, got.Content, err, tt.want)
			}
			if tt.answer != "" && strings.Contains(asked(c), "\nOnly a person may approve this, each time.") != human || patch && !strings.Contains(asked(c), filepath.FromSlash("- add `/work/notes.txt` → `/etc/passwd` (outside the workspace)")) {
				t.Errorf("asked %q", asked(c))
			}
		})
	}
}

// TestQuestionOfAnotherKind records the whole question. A client that cannot show it gets
// the desk's invitation, whether it uses tools or the methods of 2025.
func TestQuestionOfAnotherKind(t *testing.T) {
	for _, method := range []string{"codex", "sendUserMessage"} {
		synctest.Test(t, func(t *testing.T) {
			done := make(chan elicit.Decision, 1)
			e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
				q := &elicit.Question{Message: "Call the tool?", Meta: map[string]any{"tool_params": map[string]any{"path": "/etc"}}}
				done <- host.Ask(ctx, approval.Other{Ask: q}).Decision
				return nil
			})
			var record strings.Builder
			c := servertest.Connect(t, codexserver.New(e, &codexserver.Options{Desk: &servertest.Desk{Answer: servertest.After(time.Second, `{"action":"accept"}`), Invitation: "come here"}, Record: &record}), nil)
			if method == "codex" {
				if _, err := c.Tool(t.Context(), method, map[string]any{"prompt": "p"}); err != nil {
					t.Fatal(err)
				}
			} else {
				c.Ask(t, method, fmt.Sprintf(`{"conversationId":%q,"items":[]}`, c.NewConversation(t)))
			}
			must.Equal(t, method, elicit.Approved, <-done)
			synctest.Wait()
			if !strings.Contains(record.String(), `"_meta":{"tool_params":{"path":"/etc"}}`) {
				t.Errorf("%s: recorded %s", method, &record)
			}
			if len(c.Received("notifications/message")) != 1 {
				t.Errorf("%s: told %q", method, c.Received("notifications/message"))
			}
		})
	}
}

// asked returns the message of the first question that a client was asked.
func asked(c *servertest.Client) string {
	for _, params := range c.Received("elicitation/create") {
		var p struct{ Message string }
		_ = json.Unmarshal(params, &p) // "" shows in the test
		return p.Message
	}
	return ""
}

// TestFactsOfQuestions gives each question its facts, unless the engine has set some, and does
// not change the engine's question.
func TestFactsOfQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []map[string]any
		rules := approval.Rules{Decide: func(_ context.Context, r *approval.Request) (elicit.Outcome, bool) {
			got = append(got, r.Question.Meta)
			return elicit.Outcome{Decision: elicit.Denied}, true
		}}
		changes := map[string]protocol.FileChange{"/work/a": {Add: &protocol.FileContent{Content: "x"}}}
		bare := &elicit.Question{Message: "Sure?"}
		e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
			host.Ask(ctx, approval.Command{CallID: "c", Command: []string{"ls"}, Cwd: "/work", Reason: "why"})
			host.Ask(ctx, approval.Patch{CallID: "d", Changes: changes})
			host.Ask(ctx, approval.Other{Ask: bare})
			host.Ask(ctx, approval.Other{Ask: &elicit.Question{Message: "Sure?", Meta: map[string]any{"own": 1}}})
			return nil
		})
		answer := must.Get(codexserver.New(e, &codexserver.Options{Rules: rules}).Run(t.Context(), codexserver.Turn{Prompt: "p"}))(t)
		fact := func(more map[string]any) map[string]any {
			m := map[string]any{"threadId": answer.Thread, "eventId": "0"}
			maps.Copy(m, more)
			return map[string]any{"codex/approval": m}
		}
		want := []map[string]any{
			fact(map[string]any{"kind": "exec", "callId": "c", "command": []string{"ls"}, "cwd": "/work", "reason": "why"}),
			fact(map[string]any{"kind": "patch", "callId": "d", "changes": changes}),
			fact(nil), {"own": 1},
		}
		if diff := cmp.Diff(want, got); diff != "" || bare.Meta != nil {
			t.Errorf("engine's question: %v; facts (-want +got):\n%s", bare.Meta, diff)
		}
	})
}

// TestAlways accepts a lasting rule. The engine learns only how the command may run, and the same is not asked again, nor in
// another conversation. A client that is not shown the rule cannot accept it; one that uses the methods of 2025 neither.
func TestAlways(t *testing.T) {
	const always = `{"action":"accept","content":{"decision":"approved_always"}}`
	for _, tt := range []struct {
		name       string
		form       elicit.Form
		method     string
		confinable bool
		command    string
		want       string
		asked      int
	}{
		{"a form", elicit.FormDecision, "codex", true, "make", "approved true, approved true", 1},
		{"no form", elicit.FormEmpty, "codex", true, "make", "denied false, denied false", 2},
		{"no rule", elicit.FormDecision, "codex", false, "make", "denied false, denied false", 2},
		{"not shown whole", elicit.FormDecision, "codex", true, strings.Repeat("x", 2000), "denied false, denied false", 2},
		{"a method of 2025", elicit.FormDecision, "sendUserMessage", true, "make", "denied false, denied false", 2},
	} {
		folder, home := t.TempDir(), t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			done := make(chan string, 1)
			e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
				var said []string
				for range 2 {
					out := host.Ask(ctx, approval.Command{
						CallID: "c", Command: []string{tt.command}, Cwd: folder, Confinable: tt.confinable,
					})
					said = append(said, fmt.Sprint(out.Decision, " ", out.Confined))
				}
				done <- strings.Join(said, ", ")
				return nil
			})
			o := &codexserver.Options{Home: home, Approvals: elicit.Options{Schema: tt.form}}
			c := servertest.Connect(t, codexserver.New(e, o), servertest.Say(always))
			c.Decide(always)
			method := "elicitation/create"
			if tt.method == "codex" {
				if _, err := c.Tool(t.Context(), "codex", map[string]any{"prompt": "p"}); err != nil {
					t.Fatal(err)
				}
			} else {
				method = "execCommandApproval"
				c.Ask(t, tt.method, fmt.Sprintf(`{"conversationId":%q,"items":[]}`, c.NewConversation(t)))
			}
			if got := <-done; got != tt.want || len(c.Received(method)) != tt.asked {
				t.Errorf("%s: %s after %q", tt.name, got, c.Received(method))
			}
		})
	}
}

func TestDeskSeesAndStopsConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan struct{})
		e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
			host.Emit(protocol.AgentMessage{Message: "hm"})
			close(began)
			<-ctx.Done()
			return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
		})
		d := &servertest.Desk{Answer: servertest.Never}
		c := servertest.Connect(t, codexserver.New(e, &codexserver.Options{Desk: d}), nil)
		go func() {
			<-began
			stop := d.Threads()[0].Stop
			stop()
			stop() // twice does no harm
		}()
		got := must.Get(c.Tool(t.Context(), "codex", map[string]any{"prompt": "the task"}))(t)
		if !got.IsError || got.Content != "Turn aborted: a person pressed Stop on the approvals page" {
			t.Errorf("result %+v", got)
		}
		d.Threads()[0].Stop() // nothing runs
		c.Close()
		synctest.Wait()
		want := []string{"session_configured", "user_message the task", "task_started", "agent_message", "turn_aborted", "shutdown_complete"}
		must.Equal(t, "the desk saw", want, d.Seen())
	})
}

// TestDeskStopsByAnAnswer ends a turn by the answer to a question, at the page or at another desk.
func TestDeskStopsByAnAnswer(t *testing.T) {
	const aborts = `{"action":"accept","content":{"decision":"abort"}}`
	for _, tt := range []struct {
		desk         approval.Decider
		answer, want string
	}{
		{approval.ByPage, aborts, "a person pressed Stop on the approvals page"},
		{approval.ByPage, servertest.Cancel, "the approvals page cancelled the approval request"},
		{"slack", aborts, "the slack chose to abort the turn"},
		{"slack", servertest.Cancel, "the slack cancelled the approval request"},
	} {
		d := &servertest.Desk{Called: tt.desk, Answer: servertest.Say(tt.answer)}
		c := servertest.Connect(t, codexserver.New(&servertest.Engine{}, &codexserver.Options{Home: t.TempDir(), Desk: d}), nil)
		got := must.Get(c.Tool(t.Context(), "codex", map[string]any{"prompt": "touch say:done"}))(t)
		if want := "Turn aborted: " + tt.want; !got.IsError || got.Content != want {
			t.Errorf("%s: result %+v, want %q", tt.desk, got, want)
		}
	}
}

// TestDeskThatPanics checks that a panic of the desk is not an answer and ends nothing.
func TestDeskThatPanics(t *testing.T) {
	for name, tt := range map[string]struct {
		client servertest.Answer
		want   string
		told   bool
	}{
		"the client answers":         {servertest.Say(servertest.Accept), "approved", false},
		"the client cannot be asked": {nil, "denied", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := servertest.Connect(t, codexserver.New(engine.TurnFunc(servertest.AskExec), &codexserver.Options{Desk: fragile{}}), tt.client)
				for range 2 {
					got, err := c.Tool(t.Context(), "codex", map[string]any{"prompt": "p"})
					if err != nil || got.Texts[0] != tt.want {
						t.Fatalf("%q, %v", got.Texts, err)
					}
					must.Equal(t, "the caller was told", tt.told, strings.Contains(strings.Join(got.Texts, " "), "The desk could not show the question"))
				}
			})
		})
	}
}

type fragile struct{}

func (fragile) Name() approval.Decider { return "desk" }

func (fragile) Event(approval.Thread, protocol.EventMsg) { panic("event") }

func (fragile) Ask(context.Context, *approval.Request) (json.RawMessage, error) { panic("ask") }

func (fragile) Decided(*approval.Request, approval.Decision) { panic("decided") }

// TestThreadsOfServers checks that a desk can distinguish threads of two servers.
func TestThreadsOfServers(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		d := &servertest.Desk{}
		s := thread.NewTable(&memory{}, &approve.Options{Desk: d}).Share("")
		for range 2 {
			must.OK(t, say(t, start(t, s), "x"))
		}
		all := d.Threads()
		for _, th := range all {
			if th.Server == "" || th.Server != all[0].Server {
				t.Errorf("one server is %q and %q", th.Server, all[0].Server)
			}
		}
		seen[all[0].Server] = true
	}
	must.Equal(t, "the names of two servers", 2, len(seen))
}
