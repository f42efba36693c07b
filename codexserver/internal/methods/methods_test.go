package methods_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
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
		if err := c.Call(t.Context(), "addConversationListener", listen, &first); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(turn("0"), c.Heard()); diff != "" {
			t.Errorf("late listener (-want +got):\n%s", diff)
		}

		// Two listeners: each gets every event.
		if err := c.Call(t.Context(), "addConversationListener", listen, &second); err != nil {
			t.Fatal(err)
		}
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
			if err := c.Notify(t.Context(), "none", nil); err != nil {
				t.Fatal(err)
			}
			c.Start(t.Context(), "sendUserMessage", json.RawMessage(send))
		}
		if diff := cmp.Diff(append(append(turn("2"), turn("3")...), turn("4")...), c.Heard()); diff != "" {
			t.Errorf("three messages (-want +got):\n%s", diff)
		}
	})
}

func TestApprovalRequestsOf2025(t *testing.T) {
	for decision, want := range map[string]string{
		`{"decision":"approved"}`:                    "approved",
		`{"decision":"approved_for_session"}`:        "approved_for_session",
		`{"decision":"denied"}`:                      "denied",
		`{"action":"accept"}`:                        "approved",
		`{"decision":"Approved"}`:                    "denied",
		`{"decision":"approved","Decision":"abort"}`: "denied",
		`{}`:   "denied",
		`null`: "denied",
		`[]`:   "denied",
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

// TestBadParamsNameTheMember sends every method wrong params. Each answer names the member,
// and the next request works.
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
			{"getAuthStatus", `{"includeToken":"x"}`, "/includeToken"},
			{"fuzzyFileSearch", `{"query":"x"}`, "/roots"},
			{"fuzzyFileSearch", `{"query":5,"roots":[]}`, "/query"},
			{"logging/setLevel", `{}`, "/level"},
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
	for f := range reflect.TypeFor[protocol.Config]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			t.Errorf("%s has no name for JSON, so a client may set it", f.Name)
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
