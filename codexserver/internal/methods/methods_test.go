package methods_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

func TestListenersGetEveryEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(&servertest.Engine{Turn: servertest.Echo}, nil), nil)
		id := c.NewConversation(t)
		send := fmt.Sprintf(`{"conversationId":%q,"items":[{"type":"text","data":{"text":"hi"}}]}`, id)
		turn := func(n string) []string {
			return []string{"codex/event/task_started " + n, "codex/event/agent_message " + n + " hi", "codex/event/task_complete " + n}
		}

		// No client listens: the events wait for the first listener.
		if got := c.Ask(t, "sendUserMessage", send); got != "{}" {
			t.Fatal(got)
		}
		if got := c.Heard(); len(got) != 0 {
			t.Errorf("without a listener: %q", got)
		}
		var first, second protocol.AddConversationListenerResult
		listen := json.RawMessage(fmt.Sprintf(`{"conversationId":%q}`, id))
		must.OK(t, c.Call(t.Context(), "addConversationListener", listen, &first))
		if diff := cmp.Diff(turn("0"), c.Heard()); diff != "" {
			t.Errorf("late listener (-want +got):\n%s", diff)
		}

		// Two listeners: each gets every event.
		must.OK(t, c.Call(t.Context(), "addConversationListener", listen, &second))
		c.Ask(t, "sendUserMessage", send)
		var twice []string
		for _, line := range turn("1") {
			twice = append(twice, line, line)
		}
		if diff := cmp.Diff(twice, c.Heard()); diff != "" {
			t.Errorf("two listeners (-want +got):\n%s", diff)
		}

		// One less; then messages in the order in which they were sent.
		c.Ask(t, "removeConversationListener", fmt.Sprintf(`{"subscriptionId":%q}`, first.SubscriptionID))
		for range 3 {
			must.OK(t, c.Notify(t.Context(), "none", nil))
			c.Start(t.Context(), "sendUserMessage", json.RawMessage(send))
		}
		if diff := cmp.Diff(append(append(turn("2"), turn("3")...), turn("4")...), c.Heard()); diff != "" {
			t.Errorf("three messages (-want +got):\n%s", diff)
		}
	})
}

func TestApprovalRequestsOf2025(t *testing.T) {
	for decision, want := range map[string]string{
		`{"decision":"approved"}`: "approved", `{"decision":"approved_for_session"}`: "approved_for_session",
		`{"decision":"denied"}`: "denied", `{"action":"accept"}`: "approved", `{"decision":"Approved"}`: "denied",
		`{"decision":"approved","Decision":"abort"}`: "denied", `{}`: "denied", `null`: "denied", `[]`: "denied",
	} {
		synctest.Test(t, func(t *testing.T) {
			// The setting is about elicitation alone: here a flat answer is the answer.
			c := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.AskExec), &codexserver.Options{Approvals: elicit.Options{NoLegacyFlat: true}}), nil)
			c.Decide(string(json.RawMessage(decision)))
			id := c.NewConversation(t)
			c.Ask(t, "addConversationListener", fmt.Sprintf(`{"conversationId":%q}`, id))
			c.Ask(t, "sendUserMessage", fmt.Sprintf(`{"conversationId":%q,"items":[]}`, id))
			got := c.Heard()
			wanted := []string{"codex/event/task_started 0", "codex/event/exec_approval_request 0", "execCommandApproval",
				"codex/event/agent_message 0 " + want, "codex/event/task_complete 0"}
			var seen []string
			for _, line := range got {
				if !strings.HasPrefix(line, "notifications/message") {
					seen = append(seen, line)
				}
			}
			if diff := cmp.Diff(wanted, seen); diff != "" {
				t.Errorf("%s (-want +got):\n%s", decision, diff)
			}
		})
	}
}

func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiting := engine.TurnFunc(func(ctx context.Context, _ engine.Host, _ []protocol.InputItem) error {
			<-ctx.Done()
			return ctx.Err()
		})
		c := servertest.Dial(t, codexserver.New(waiting, nil), nil)
		id := c.NewConversation(t)
		named := fmt.Sprintf(`{"conversationId":%q}`, id)
		c.Ask(t, "addConversationListener", named)
		if got := c.Ask(t, "interruptConversation", named); !strings.Contains(got, "(-32600)") {
			t.Errorf("interrupt of nothing: %s", got)
		}
		c.Ask(t, "sendUserMessage", fmt.Sprintf(`{"conversationId":%q,"items":[]}`, id))
		synctest.Wait()
		if got := c.Ask(t, "interruptConversation", named); got != `{"abortReason":"interrupted"}` {
			t.Errorf("interrupt: %s", got)
		}
		c.Ask(t, "sendUserMessage", fmt.Sprintf(`{"conversationId":%q,"items":[]}`, id))
		want := []string{"codex/event/task_started 0", "codex/event/turn_aborted 0", "codex/event/task_started 2"}
		if diff := cmp.Diff(want, c.Heard()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestLogout tells the client that nobody is signed in, after the answer.
func TestLogout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(&servertest.Engine{Turn: servertest.Echo}, nil), nil)
		if got := c.Ask(t, "logoutChatGpt", `{}`); got != `{}` {
			t.Error(got)
		}
		if got := strings.Join(c.Heard(), " "); got != "authStatusChange" {
			t.Errorf("told %q", got)
		}
	})
}

// TestBadParamsNameTheMember sends every method wrong params. Each answer names the member, and the next request works.
func TestBadParamsNameTheMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(&servertest.Engine{Turn: servertest.Echo}, nil), nil)
		id := c.NewConversation(t)
		for _, tt := range []struct{ method, params, want string }{
			{"newConversation", `{"model":5}`, "/model"},
			{"newConversation", `{"approvalPolicy":"bogus"}`, "/approvalPolicy"},
			{"newConversation", `{"sandbox":"bogus"}`, "/sandbox"},
			{"newConversation", `{"config":[]}`, "/config"},
			{"newConversation", `{"includePlanTool":"yes"}`, "/includePlanTool"},
			{"newConversation", `{"profile":"nosuch"}`, "(-32600)"},
			{"newConversation", `[]`, "(-32602)"},
			{"addConversationListener", `{}`, "/conversationId"},
			{"addConversationListener", `{"conversationId":"nosuch"}`, "nosuch"},
			{"removeConversationListener", `{}`, "/subscriptionId"},
			{"removeConversationListener", `{"subscriptionId":"nosuch"}`, "nosuch"},
			{"sendUserMessage", `{"conversationId":"%s"}`, "/items"},
			{"sendUserMessage", `{"conversationId":"%s","items":{}}`, "/items"},
			{"sendUserMessage", `{"conversationId":"%s","items":[{"type":"text","text":"flat"}]}`, "/items/0"},
			{"sendUserMessage", `{"conversationId":"%s","items":[{"type":"video","data":{}}]}`, "/items/0"},
			{"sendUserMessage", `{"conversationId":"nosuch","items":[]}`, "nosuch"},
			{"interruptConversation", `{"conversationId":"nosuch"}`, "nosuch"},
			{"interruptConversation", `{"conversationId":"%s"}`, "(-32600)"},
			{"interruptConversation", `{"conversationId":7}`, "/conversationId"},
			{"getAuthStatus", `{"includeToken":"x"}`, "/includeToken"}, {"fuzzyFileSearch", `{"query":"x"}`, "/roots"},
			{"fuzzyFileSearch", `{"query":5,"roots":[]}`, "/query"}, {"logging/setLevel", `{}`, "/level"},
			{"tools/call", `{"name":"codex","arguments":[]}`, "/arguments"},
			{"tools/call", `{"name":"codex","_meta":{"progressToken":1.5}}`, "/_meta/progressToken"},
		} {
			got := c.Ask(t, tt.method, strings.ReplaceAll(tt.params, "%s", id))
			if !strings.Contains(got, tt.want) || !strings.Contains(got, "(-32") {
				t.Errorf("%s %s: %s, want %q", tt.method, tt.params, got, tt.want)
			}
			if got := c.Ask(t, "ping", `{}`); got != "{}" {
				t.Fatalf("after %s %s: ping: %s", tt.method, tt.params, got)
			}
		}
		for _, tt := range []struct{ method, params string }{
			{"newConversation", `{"model":null,"unknown":1}`},
			{"getUserAgent", `{}`}, {"getAuthStatus", `{}`},
		} {
			if got := c.Ask(t, tt.method, strings.ReplaceAll(tt.params, "%s", id)); strings.Contains(got, "(-32") {
				t.Errorf("%s %s: %s", tt.method, tt.params, got)
			}
		}
	})
}

func TestMethodsOfAPlainEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.Echo), nil), nil)
		for _, method := range []string{"getAuthStatus", "fuzzyFileSearch"} {
			if got := c.Ask(t, method, `{}`); !strings.Contains(got, "(-32601)") {
				t.Errorf("%s: %s", method, got)
			}
		}
	})
}

// TestConfigOfTheWire checks that a client chooses no member of a configuration but those of newConversation.
func TestConfigOfTheWire(t *testing.T) {
	var names []string
	for f := range reflect.TypeFor[protocol.NewConversationParams]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			t.Errorf("%s has no name for JSON", f.Name)
		}
		if name != "-" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	want := []string{"approvalPolicy", "baseInstructions", "config", "cwd", "includeApplyPatchTool", "includePlanTool", "model", "profile", "sandbox"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// faulty is an engine whose every method but Start fails.
type faulty struct {
	*servertest.Engine
	err error
}

func (f faulty) AuthStatus(context.Context, protocol.GetAuthStatusParams) (*protocol.GetAuthStatusResult, error) {
	return nil, f.err
}
func (f faulty) Logout(context.Context) error { return f.err }
func (f faulty) SearchFiles(context.Context, protocol.FuzzyFileSearchParams) (*protocol.FuzzyFileSearchResult, error) {
	return nil, f.err
}

// TestFaultsOfTheEngine answers a fault of the engine with an error that says what failed. What is
// wrong with a request has another code.
func TestFaultsOfTheEngine(t *testing.T) {
	for _, tt := range []struct {
		err   error
		wrong bool
	}{{errors.New("broken"), false}, {&engine.RefusedError{Err: errors.New("broken")}, true}, {fmt.Errorf("broken: %w", engine.ErrNotFound), true}} {
		synctest.Test(t, func(t *testing.T) {
			c := servertest.Dial(t, codexserver.New(faulty{&servertest.Engine{}, tt.err}, nil), nil)
			for _, call := range []struct {
				method, params string
				tells          bool // it tells wrong requests from faults
			}{
				{"getAuthStatus", `{}`, false}, {"logoutChatGpt", `{}`, false},
				{"fuzzyFileSearch", `{"query":"x","roots":["/"]}`, true},
			} {
				code := "(-32603)"
				if call.tells && tt.wrong {
					code = "(-32600)"
				}
				if got := c.Ask(t, call.method, call.params); !strings.Contains(got, code) || !strings.Contains(got, "broken") {
					t.Errorf("%s, %v: %s, want %s", call.method, tt.err, got, code)
				}
			}
			for _, line := range c.Heard() {
				if strings.Contains(line, "authStatusChange") {
					t.Errorf("after a failed change: %s", line)
				}
			}
		})
	}
}

// TestNewSearchEndsTheOld begins a search with the token of one that runs, and one with another.
func TestNewSearchEndsTheOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(&servertest.Engine{}, nil), nil)
		search := func(query, token string) <-chan error {
			call := c.Start(t.Context(), "fuzzyFileSearch", map[string]any{"query": query, "roots": []string{}, "cancellationToken": token})
			ended := make(chan error, 1)
			go func() { ended <- call.Result(nil) }()
			synctest.Wait()
			return ended
		}
		over := func(ended <-chan error) bool {
			select {
			case err := <-ended:
				return err == nil
			default:
				return false
			}
		}
		first, other := search("slow", "a"), search("slow", "b")
		if over(first) || over(other) {
			t.Error("a search has ended")
		}
		second := search("slow", "a")
		if !over(first) || over(second) || over(other) {
			t.Error("the second search did not end the first alone")
		}
		if !over(search("x", "b")) || !over(other) || over(second) {
			t.Error("a quick search did not end its predecessor alone")
		}
		if !over(search("x", "a")) || !over(second) {
			t.Error("the end of the first search forgot the second")
		}
	})
}

// TestWhoIsAsked sends each kind of question to a client of September 2025, whose answers are of the
// client, and are no lasting rule.
func TestWhoIsAsked(t *testing.T) {
	for method, ask := range map[string]func(ctx context.Context, h engine.Host) elicit.Outcome{
		"execCommandApproval": func(ctx context.Context, h engine.Host) elicit.Outcome {
			return h.Ask(ctx, approval.Command{CallID: "1", Command: []string{"make"}, Cwd: "/w"})
		},
		"applyPatchApproval": func(ctx context.Context, h engine.Host) elicit.Outcome {
			return h.Ask(ctx, approval.Patch{CallID: "1", Changes: map[string]protocol.FileChange{"/w/a": {Add: &protocol.FileContent{}}}, Cwd: "/w"})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var got []elicit.Decision
			e := engine.TurnFunc(func(ctx context.Context, h engine.Host, _ []protocol.InputItem) error {
				got = append(got, ask(ctx, h).Decision)
				return nil
			})
			d := &servertest.Desk{Answer: servertest.Never}
			c := servertest.Dial(t, codexserver.New(e, &codexserver.Options{Desk: d}), nil)
			id := c.NewConversation(t)
			c.Ask(t, "sendUserMessage", fmt.Sprintf(`{"conversationId":%q,"items":[]}`, id))
			synctest.Wait()
			asked := c.Received(method)
			var params struct {
				ConversationID string `json:"conversation_id"`
				CallID         string `json:"call_id"`
			}
			if len(asked) != 1 || json.Unmarshal(asked[0], &params) != nil || params.ConversationID != id || params.CallID != "1" {
				t.Errorf("%s: asked %s", method, asked)
			}
			if len(got) != 1 || got[0] != elicit.Approved || len(d.Decisions()) != 1 || d.Decisions()[0] != "approved by "+string(approval.ByClient) {
				t.Errorf("%s: %v, %q", method, got, d.Decisions())
			}
		})
	}
}

// TestInterruptRightAfterTheMessage sends a message and its interrupt in one write, many
// times. Mostly the turn has not begun when the interrupt arrives.
func TestInterruptRightAfterTheMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := servertest.Lines(t, codexserver.New(engine.TurnFunc(func(ctx context.Context, _ engine.Host, _ []protocol.InputItem) error {
			<-ctx.Done()
			return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
		}), nil))
		must.OK(t, end.Write(t.Context(), [][]byte{[]byte(`{"jsonrpc":"2.0","id":0,"method":"newConversation","params":{}}`)}))
		_, id, _ := strings.Cut(servertest.Read(t, end, `"conversationId"`), `"conversationId":"`)
		id, _, _ = strings.Cut(id, `"`)
		for range 30 {
			err := end.Write(t.Context(), [][]byte{
				fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"sendUserMessage","params":{"conversationId":%q,"items":[]}}`, id),
				fmt.Appendf(nil, `{"jsonrpc":"2.0","id":2,"method":"interruptConversation","params":{"conversationId":%q}}`, id),
			})
			must.OK(t, err)
			servertest.Read(t, end, `"id":1,"result":{}`)
			servertest.Read(t, end, `"abortReason":"interrupted"`)
		}
	})
}
