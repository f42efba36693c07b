package codexserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/google/go-cmp/cmp"
)

// desk answers as configured and records what it sees.
type desk struct {
	ask func(context.Context) (string, error)

	mu      sync.Mutex
	seen    []string
	stop    func()
	decided []string
}

func (d *desk) Event(c approval.Thread, m protocol.EventMsg) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop = c.Stop
	word := m.EventType()
	if u, ok := m.(protocol.UserMessage); ok {
		word += " " + u.Message
	}
	d.seen = append(d.seen, word)
}

func (d *desk) Invite() string { return "come here" }

func (d *desk) Ask(ctx context.Context, r *approval.Request) (json.RawMessage, error) {
	answer, err := d.ask(ctx)
	return json.RawMessage(answer), err
}

func (d *desk) Decided(_ *approval.Request, made approval.Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.decided = append(d.decided, string(made.Decision)+" by "+string(made.By))
}

// silent is a place that never answers.
func silent(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func says(answer string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return answer, nil }
}

// later answers a time after the question.
func later(d time.Duration, answer string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		select {
		case <-time.After(d):
			return answer, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func TestDeskAndClient(t *testing.T) {
	const (
		accept  = `{"action":"accept"}`
		session = `{"action":"accept","content":{"decision":"approved_for_session"}}`
		decline = `{"action":"decline","content":{"feedback":"use make"}}`
		cancel  = `{"action":"cancel"}`
	)
	type answer = func(context.Context, *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error)
	after := func(d time.Duration, a answer) answer {
		return func(ctx context.Context, p *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error) {
			select {
			case <-time.After(d):
				return a(ctx, p)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	for _, tt := range []struct {
		name   string
		client answer
		desk   func(context.Context) (string, error)
		want   string // the decision, and who made it
		told   string // the second block of the caller's result
	}{
		{"the desk alone can be asked", nil, later(time.Minute, accept), "approved by desk", ""},
		{"the desk alone, for the session", nil, later(time.Second, session), "approved_for_session by desk", ""},
		{"the desk alone, declined", nil, later(time.Second, decline), "denied by desk", ""},
		{"the desk alone, stopped", nil, later(time.Second, cancel), "abort by desk", ""},
		{"the desk alone, an answer that is none", nil, later(time.Second, `{"action":"yes"}`), "denied by desk", ""},
		{"the desk alone, not even JSON", nil, later(time.Second, `yes`), "denied by desk", ""},
		{"nobody", nil, silent, "denied by desk", "No answer within 120 s"},
		{"a desk that fails", nil, func(context.Context) (string, error) { return "", errors.New("closed") }, "denied by client", "cannot show"},
		{"the client first", action("accept"), silent, "approved by client", ""},
		{"the client first, declined", action("decline"), later(time.Second, accept), "denied by client", ""},
		{"the client first, cancelled", action("cancel"), later(time.Second, accept), "abort by client", ""},
		{"the desk first", after(time.Minute, action("accept")), says(decline), "denied by desk", ""},
		{"the desk first, approved", never, says(accept), "approved by desk", ""},
		{"a client that fails", fails, later(time.Second, accept), "approved by desk", ""},
		{"a client that fails, nobody at the desk", fails, silent, "denied by desk", "No answer within 120 s"},
		{"a client that fails after the desk has answered", after(time.Second, fails), says(accept), "approved by desk", ""},
		{"neither answers", never, silent, "denied by", "o answer within 120 s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &desk{ask: tt.desk}
				var record strings.Builder
				c := connect(t, asking, &codexserver.Options{
					Desk: d, Record: &record, Approvals: elicit.Options{Timeout: 2 * time.Minute},
				}, tt.client)
				got, _, err := c.call(t.Context(), "codex", map[string]any{"prompt": "p"})
				if err != nil {
					t.Fatal(err)
				}
				if len(d.decided) != 1 || !strings.HasPrefix(d.decided[0], tt.want) {
					t.Errorf("decided %q, want %q", d.decided, tt.want)
				}
				decision, _, _ := strings.Cut(tt.want, " ")
				if decision != "abort" && got.Texts[0] != decision {
					t.Errorf("the engine saw %q", got.Content)
				}
				if got.Content != strings.Join(got.Texts, "\n") {
					t.Errorf("structured content %q, text content %q", got.Content, got.Texts)
				}
				told := strings.Join(got.Texts[1:], " ")
				if (tt.told == "") != (told == "") || !strings.Contains(told, tt.told) {
					t.Errorf("the caller was told %q, want %q", told, tt.told)
				}
				synctest.Wait()
				if invited := slices.Contains(c.events, "background_event") && len(c.logs) > 0; tt.client == nil && !invited {
					t.Errorf("the client was not told of the desk: %q, %q", c.events, c.logs)
				}
				if !strings.Contains(record.String(), `"by":"`) {
					t.Errorf("the record does not say who decided: %s", &record)
				}
			})
		})
	}
}

// TestStricterOfTwoAnswersCounts has the client approve and the desk deny at the same
// time. The denial counts.
func TestStricterOfTwoAnswersCounts(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			arrived := make(chan struct{})
			d := &desk{ask: func(context.Context) (string, error) {
				<-arrived
				return `{"action":"decline"}`, nil // whatever became of ctx meanwhile
			}}
			c := connect(t, asking, &codexserver.Options{Desk: d}, func(context.Context, *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error) {
				close(arrived)
				return &mcptypes.ElicitResult{Action: "accept"}, nil
			})
			got, _, err := c.call(t.Context(), "codex", map[string]any{"prompt": "p"})
			if err != nil {
				t.Fatal(err)
			}
			if got.Content != "denied" || len(d.decided) != 1 {
				t.Errorf("%q, decided %q", got.Content, d.decided)
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
		d := &desk{ask: silent}
		c := connect(t, e, &codexserver.Options{Desk: d}, nil)
		go func() {
			<-began
			d.mu.Lock()
			stop := d.stop
			d.mu.Unlock()
			stop()
			stop() // twice does no harm
		}()
		got, _, err := c.call(t.Context(), "codex", map[string]any{"prompt": "the task"})
		if err != nil {
			t.Fatal(err)
		}
		if !got.IsError || got.Content != "Turn aborted: stopped by the user" {
			t.Errorf("result %+v", got)
		}
		d.stop() // nothing runs
		c.Close()
		synctest.Wait()
		want := []string{"session_configured", "user_message the task", "task_started", "agent_message", "turn_aborted", "shutdown_complete"}
		if diff := cmp.Diff(want, d.seen); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestPatchIsApprovedOnce does not let an approval last for the session if the engine does
// not offer that.
func TestPatchIsApprovedOnce(t *testing.T) {
	for once, want := range map[bool]elicit.Decision{false: elicit.ApprovedForSession, true: elicit.Approved} {
		synctest.Test(t, func(t *testing.T) {
			e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
				out := host.ApprovePatch(ctx, protocol.PatchApprovalRequest{CallID: "c", Cwd: "/work", Once: once, Changes: map[string]protocol.FileChange{
					"/etc/passwd": {Add: &protocol.FileContent{Content: "x"}},
				}, Links: map[string]string{"/etc/passwd": "/work/notes.txt"}})
				host.Emit(protocol.AgentMessage{Message: string(out.Decision)})
				return nil
			})
			var message string
			c := connect(t, e, nil, func(_ context.Context, p *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error) {
				message = p.Message
				return &mcptypes.ElicitResult{Action: "accept", Content: map[string]mcptypes.ElicitValue{"decision": mcptypes.ElicitString("approved_for_session")}}, nil
			})
			got, _, err := c.call(t.Context(), "codex", map[string]any{"prompt": "p"})
			if err != nil {
				t.Fatal(err)
			}
			if got.Content != string(want) {
				t.Errorf("once %v: %s, want %s", once, got.Content, want)
			}
			if !strings.Contains(message, "- add `/work/notes.txt` → `/etc/passwd` (outside the workspace)") {
				t.Errorf("the client was asked %q", message)
			}
		})
	}
}

func TestRulesDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		rules := approval.Rules{
			Deny: [][]string{{"git", "push"}},
			Decide: func(_ context.Context, r *approval.Request) (elicit.Outcome, bool) {
				exec := r.Event.(protocol.ExecApprovalRequest)
				switch exec.Command[0] {
				case "git":
					return elicit.Outcome{Decision: elicit.Approved}, true
				case "rm":
					return elicit.Outcome{Decision: elicit.Denied, Feedback: "not in " + exec.Cwd}, true
				case "odd":
					return elicit.Outcome{Decision: "maybe"}, true
				}
				return elicit.Outcome{}, false
			},
		}
		e := engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
			out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "c", Command: strings.Fields(in[0].Text), Cwd: "/work"})
			host.Emit(protocol.AgentMessage{Message: string(out.Decision) + " " + out.ForModel()})
			return nil
		})
		c := connect(t, e, &codexserver.Options{Rules: rules}, func(context.Context, *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error) {
			asked++
			return &mcptypes.ElicitResult{Action: "accept"}, nil
		})
		for _, tt := range []struct {
			command, want string
			asked         int
		}{
			{"git init", "approved ", 0},
			{"git push", "denied declined: a rule of the user denies this command", 0},
			{"rm -rf x", "denied declined: not in /work", 0},
			{"odd", "denied declined", 0},
			{"make", "approved ", 1},
		} {
			got, _, err := c.call(t.Context(), "codex", map[string]any{"prompt": tt.command})
			if err != nil {
				t.Fatal(err)
			}
			if got.Content != tt.want || asked != tt.asked {
				t.Errorf("%s: %q after %d questions, want %q after %d", tt.command, got.Content, asked, tt.want, tt.asked)
			}
		}
	})
}

// TestDeskThatPanics checks that a panic of the desk is not an answer and ends nothing.
func TestDeskThatPanics(t *testing.T) {
	for name, tt := range map[string]struct {
		client func(context.Context, *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error)
		want   string
		told   bool
	}{
		"the client answers":         {action("accept"), "approved", false},
		"the client cannot be asked": {nil, "denied", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connect(t, asking, &codexserver.Options{Desk: fragile{}}, tt.client)
				for range 2 {
					got, _, err := c.call(t.Context(), "codex", map[string]any{"prompt": "p"})
					if err != nil || got.Texts[0] != tt.want {
						t.Fatalf("%q, %v", got.Texts, err)
					}
					if told := strings.Contains(strings.Join(got.Texts, " "), "The desk could not show the question"); told != tt.told {
						t.Errorf("the caller was told %q", got.Texts)
					}
				}
			})
		})
	}
}

type fragile struct{}

func (fragile) Event(approval.Thread, protocol.EventMsg) { panic("event") }
func (fragile) Ask(context.Context, *approval.Request) (json.RawMessage, error) {
	panic("ask")
}
func (fragile) Decided(*approval.Request, approval.Decision) { panic("decided") }

// TestRulesDecideFails has a rule that panics, which denies, and rules that approve more
// than the question offers.
func TestRulesDecideFails(t *testing.T) {
	for name, tt := range map[string]struct {
		decide func(context.Context, *approval.Request) (elicit.Outcome, bool)
		want   string
	}{
		"panics": {func(context.Context, *approval.Request) (elicit.Outcome, bool) { panic("rule") },
			"denied declined: a rule of the user failed"},
		"for the session": {func(context.Context, *approval.Request) (elicit.Outcome, bool) {
			return elicit.Outcome{Decision: elicit.ApprovedForSession}, true
		}, "approved "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
					out := host.ApprovePatch(ctx, protocol.PatchApprovalRequest{CallID: "c", Cwd: "/work", Once: true})
					host.Emit(protocol.AgentMessage{Message: string(out.Decision) + " " + out.ForModel()})
					return nil
				})
				c := connect(t, e, &codexserver.Options{Rules: approval.Rules{Decide: tt.decide}}, nil)
				got, _, err := c.call(t.Context(), "codex", map[string]any{"prompt": "p"})
				if err != nil || got.Content != tt.want {
					t.Errorf("%q, %v; want %q", got.Content, err, tt.want)
				}
			})
		})
	}
}

// TestFailingClientGetsInvitation sends the desk's invitation to a client that could not
// ask, while the question is open at the desk.
func TestFailingClientGetsInvitation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, asking, &codexserver.Options{Desk: &desk{ask: later(time.Minute, `{"action":"accept"}`)}}, fails)
		go func() { _, _, _ = c.call(context.Background(), "codex", map[string]any{"prompt": "p"}) }()
		<-time.After(time.Second)
		synctest.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if !slices.Contains(c.events, "background_event") || len(c.logs) != 1 {
			t.Errorf("told %q, %q", c.events, c.logs)
		}
	})
}

// bare is an engine whose turns get the server's host unchanged.
type bare struct {
	host engine.Host
	turn func(context.Context, engine.Host)
}

func (e *bare) Start(ctx context.Context, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	e.host = host
	return engine.TurnFunc(func(ctx context.Context, _ engine.Host, _ []protocol.InputItem) error {
		e.turn(ctx, e.host)
		return nil
	}).Start(ctx, cfg, host)
}

// TestQuestionOfAnotherKind records the whole question. A client that cannot show it gets
// the desk's invitation, whether it uses tools or the methods of 2025.
func TestQuestionOfAnotherKind(t *testing.T) {
	for _, method := range []string{"codex", "sendUserMessage"} {
		synctest.Test(t, func(t *testing.T) {
			done := make(chan elicit.Decision, 1)
			e := &bare{turn: func(ctx context.Context, host engine.Host) {
				q := &elicit.Question{Message: "Call the tool?", Meta: map[string]any{"tool_params": map[string]any{"path": "/etc"}}}
				done <- host.Approve(ctx, q).Decision
			}}
			var record strings.Builder
			c := connect(t, e, &codexserver.Options{Desk: &desk{ask: later(time.Second, `{"action":"accept"}`)}, Record: &record}, nil)
			if method == "codex" {
				if _, _, err := c.call(t.Context(), method, map[string]any{"prompt": "p"}); err != nil {
					t.Fatal(err)
				}
			} else {
				var made protocol.NewConversationResult
				if err := c.Call(t.Context(), "newConversation", protocol.NewConversationParams{}, &made); err != nil {
					t.Fatal(err)
				}
				said := protocol.SendUserMessageParams{ConversationID: made.ConversationID, Items: protocol.TextInput("p")}
				if err := c.Call(t.Context(), method, said, nil); err != nil {
					t.Fatal(err)
				}
			}
			if got := <-done; got != elicit.Approved {
				t.Errorf("%s: %s", method, got)
			}
			synctest.Wait()
			if !strings.Contains(record.String(), `"_meta":{"tool_params":{"path":"/etc"}}`) {
				t.Errorf("%s: recorded %s", method, &record)
			}
			if len(c.logs) != 1 {
				t.Errorf("%s: told %q", method, c.logs)
			}
		})
	}
}

// TestThreadsOfServers checks that a desk can distinguish threads of two servers.
func TestThreadsOfServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[string]bool{}
		e := &bare{turn: func(context.Context, engine.Host) {}}
		for range 2 {
			d := &threads{}
			c := connect(t, e, &codexserver.Options{Desk: d}, nil)
			for range 2 {
				if _, _, err := c.call(t.Context(), "codex", map[string]any{"prompt": "p"}); err != nil {
					t.Fatal(err)
				}
			}
			c.Close()
			synctest.Wait()
			for _, th := range d.seen {
				if th.Server == "" || th.Server != d.seen[0].Server {
					t.Errorf("one server is %q and %q", th.Server, d.seen[0].Server)
				}
			}
			seen[d.seen[0].Server] = true
		}
		if len(seen) != 2 {
			t.Errorf("two servers are %v", seen)
		}
	})
}

// threads is a desk that records the conversations of its events.
type threads struct {
	fragile
	seen []approval.Thread
}

func (d *threads) Event(c approval.Thread, _ protocol.EventMsg) { d.seen = append(d.seen, c) }

// TestReplaceableProgramIsApprovedOnce asks about a program that lies where commands may
// write. The question says where, no rule answers it, and an approval for the session holds
// once.
func TestReplaceableProgramIsApprovedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
			out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{
				CallID: "c", Command: []string{"tsc"}, Cwd: "/work", Once: true, Replaceable: true, Program: "/work/node_modules/.bin/tsc",
			})
			host.Emit(protocol.AgentMessage{Message: string(out.Decision)})
			return nil
		})
		var message string
		options := &codexserver.Options{Rules: approval.Rules{Allow: []approval.Rule{{Command: []string{"tsc"}, Outside: true}}}}
		c := connect(t, e, options, func(_ context.Context, p *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error) {
			message = p.Message
			return &mcptypes.ElicitResult{Action: "accept", Content: map[string]mcptypes.ElicitValue{"decision": mcptypes.ElicitString("approved_for_session")}}, nil
		})
		got, _, err := c.call(t.Context(), "codex", map[string]any{"prompt": "p"})
		if err != nil {
			t.Fatal(err)
		}
		if want := "Allow Codex to run `tsc` in `/work`?\nThe program is `/work/node_modules/.bin/tsc`."; message != want || got.Content != string(elicit.Approved) {
			t.Errorf("%s after %q, want %q", got.Content, message, want)
		}
	})
}
