package mcphttp_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/google/go-cmp/cmp"
)

const (
	run, approve, read = mcphttp.ScopeRun, mcphttp.ScopeApprove, mcphttp.ScopeRead
)

// withScopes accepts tokens "NAME SCOPES" with these scopes, and "NAME" with all.
func withScopes(o *mcphttp.Options) {
	o.Metadata = "https://example.com/.well-known/oauth-protected-resource/mcp"
	o.Authenticate = func(r *http.Request) (mcphttp.Principal, error) {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		name, scopes, some := strings.Cut(token, " ")
		if !ok || name != "ann" && name != "bob" {
			return mcphttp.Principal{}, &mcphttp.Refusal{Code: "invalid_token", Err: errors.New("unknown token")}
		}
		who := mcphttp.Principal{Name: name}
		if some {
			who.Scopes = mcphttp.ParseScopes(scopes)
		}
		return who, nil
	}
}

// as returns the headers with a token of ann that has only these scopes.
func as(h headers, scopes ...mcphttp.Scope) headers {
	with := maps.Clone(h)
	if with == nil {
		with = headers{}
	}
	with["Authorization"] = "Bearer ann openid " + mcphttp.FormatScopes(scopes)
	return with
}

// message is a message with the scopes that it needs.
type message struct {
	name, method string // the method of HTTP
	body         string
	h            headers
	needs        []mcphttp.Scope
}

var combinations = [][]mcphttp.Scope{
	{}, {read}, {run}, {approve}, {run, read}, {approve, read}, {run, approve}, {run, approve, read},
}

// check sends the message with each combination of scopes.
func (m message) check(t *testing.T, s *site, union bool) {
	t.Helper()
	for _, scopes := range combinations {
		got := s.send(m.method, m.body, as(m.h, scopes...), false)
		lacks := slices.ContainsFunc(m.needs, func(n mcphttp.Scope) bool { return !slices.Contains(scopes, n) })
		if !lacks {
			if got.status == http.StatusForbidden || got.status == http.StatusUnauthorized {
				t.Errorf("%s with %q: %+v", m.name, scopes, got)
			}
			continue
		}
		named := m.needs
		if union {
			named = slices.DeleteFunc(mcphttp.Scopes(), func(n mcphttp.Scope) bool { return !slices.Contains(m.needs, n) && !slices.Contains(scopes, n) })
		}
		want := `Bearer error="insufficient_scope", scope="` + mcphttp.FormatScopes(named) + `", resource_metadata="https://example.com/.well-known/oauth-protected-resource/mcp"`
		if diff := cmp.Diff(want, got.header.Get("WWW-Authenticate")); got.status != http.StatusForbidden || diff != "" {
			t.Errorf("%s with %q: %+v\n%s", m.name, scopes, got, diff)
		}
		if strings.Contains(got.body, "result") || strings.Contains(got.body, "heard") {
			t.Errorf("%s with %q is answered: %s", m.name, scopes, got.body)
		}
	}
}

// calls lists the tools with the scope that a call needs.
var calls = map[string]mcphttp.Scope{
	"codex": run, "codex-reply": run, "codex-review": run, "codex-interrupt": run,
	"codex-list": read, "codex-models": read, "codex-show": read, "codex-wait": read,
	"no-such-tool": run, "CODEX-LIST": run,
}

// able is an engine whose server offers every tool.
type able struct{ engine.TurnFunc }

func (able) List(context.Context, protocol.ListConversationsParams) (*protocol.ListConversationsResult, error) {
	return nil, errors.New("not called")
}

func (able) Models(context.Context) (*protocol.ModelList, error) {
	return nil, errors.New("not called")
}

// TestToolsHaveScopes checks that somebody has chosen the scope of each tool that there is. One that is not named
// needs codex:run.
func TestToolsHaveScopes(t *testing.T) {
	s := open(t, able{echo}, &codexserver.Options{Home: testenv.Home(t)}, withScopes)
	body, h := modern("1", "tools/list", `{}`, "")
	_, list, _ := strings.Cut(s.post(body, h).body, `"tools":`)
	for name := range calls {
		if quoted := `"name":"` + name + `"`; strings.Contains(list, quoted) {
			list = strings.ReplaceAll(list, quoted, "")
		} else if strings.HasPrefix(name, "codex") {
			t.Errorf("there is no tool %s", name)
		}
	}
	if i := strings.Index(list, `"name":"`); i >= 0 {
		t.Errorf("a tool without a scope: %.100s", list[i:])
	}
}

const arguments = `"arguments":{"prompt":"hello","threadId":"x","threadIds":["x"],"action":"show"}`

// TestScopesToday sends every kind of request of 2026-07-28 with every combination of scopes.
func TestScopesToday(t *testing.T) {
	s := open(t, echo, nil, withScopes)
	var messages []message
	add := func(method, more string, needs ...mcphttp.Scope) {
		body, h := modern("1", method, `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`, more)
		messages = append(messages, message{"today " + method + " " + more, http.MethodPost, body, h, needs})
	}
	for method, scope := range map[string]mcphttp.Scope{
		"server/discover": read, "ping": read, "tools/list": read,
		"tasks/get": read, "tasks/list": read, "tasks/result": read, "tasks/update": approve, "tasks/cancel": run,
		"prompts/list": run, "completion/complete": run, "no/such": run, "Tools/list": run,
		"sendUserMessage": run,
	} {
		more := ""
		if strings.HasPrefix(method, "tasks/") {
			more = `"taskId":"x"`
		}
		add(method, more, scope)
	}
	add("subscriptions/listen", `"notifications":{}`, read)
	add("resources/read", `"uri":"codex://x"`, run)
	messages[len(messages)-1].h["Mcp-Name"] = "codex://x"
	for tool, scope := range calls {
		for _, tt := range []struct {
			more  string
			needs []mcphttp.Scope
		}{
			{"", []mcphttp.Scope{scope}},
			{`,"inputResponses":{"q1":{"action":"accept"}}`, []mcphttp.Scope{scope, approve}},
			{`,"inputResponses":null`, []mcphttp.Scope{scope, approve}},
			{`,"requestState":"x"`, []mcphttp.Scope{scope, approve}},
			{`,"requestState":5`, []mcphttp.Scope{scope, approve}},
		} {
			add("tools/call", `"name":"`+tool+`",`+arguments+tt.more, tt.needs...)
			messages[len(messages)-1].h["Mcp-Name"] = tool
		}
	}
	for _, m := range messages {
		m.check(t, s, false)
	}
}

// TestScopesInSession sends every kind of message in a session that a token with all scopes
// began, with every combination of scopes.
func TestScopesInSession(t *testing.T) {
	s := open(t, echo, nil, withScopes)
	session := s.initialize(nil)
	var messages []message
	add := func(needs mcphttp.Scope, body string) {
		messages = append(messages, message{body, http.MethodPost, body, session, []mcphttp.Scope{needs}})
	}
	for method, scope := range map[string]mcphttp.Scope{
		"ping": read, "tools/list": read, "resources/read": run, "logging/setLevel": read,
		"initialize": read, "prompts/list": run, "resources/subscribe": run, "sendUserMessage": run, "no/such": run, "Ping": run,
	} {
		add(scope, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{}}`)
	}
	for tool, scope := range calls {
		add(scope, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`",`+arguments+`}}`)
	}
	add(run, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["codex-list"]}}`)
	add(run, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
	add(run, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex-list","name":"codex"}}`)
	add(read, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	add(read, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	add(run, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`)
	add(run, `{"jsonrpc":"2.0","method":"notifications/other"}`)
	add(approve, `{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"decision":"approved"}}}`)
	add(approve, `{"jsonrpc":"2.0","id":"x","result":{}}`)
	add(approve, `{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":"x"}}`)
	messages = append(messages, message{"GET", http.MethodGet, "", session, []mcphttp.Scope{read}})
	for _, m := range messages {
		m.check(t, s, true)
	}
	message{"initialize", http.MethodPost, hello, nil, []mcphttp.Scope{read}}.check(t, s, true)
}

// TestScopeOfDelete checks that a token without codex:run may end only a session in which nothing ran.
func TestScopeOfDelete(t *testing.T) {
	s := open(t, echo, nil, withScopes)
	for name, tt := range map[string]struct {
		ran    bool
		scopes []mcphttp.Scope
		want   int
	}{
		"nothing ran":           {false, []mcphttp.Scope{read}, 204},
		"nothing ran, no read":  {false, []mcphttp.Scope{run, approve}, 403},
		"something ran":         {true, []mcphttp.Scope{read, approve}, 403},
		"something ran, by run": {true, []mcphttp.Scope{run}, 204},
	} {
		h := s.initialize(nil)
		s.post(codex("1", "p", ""), as(h, read)) // refused, so nothing ran
		if tt.ran {
			s.post(codex("1", "p", ""), h)
		}
		s.do(http.MethodDelete, "", as(h, tt.scopes...)).wants(t, tt.want, "", "%s", name)
	}
}

// TestScopeOfEviction checks that a new session of a token without codex:run does not end an
// idle session in which something ran. That one may have turns in the background.
func TestScopeOfEviction(t *testing.T) {
	s := open(t, echo, nil, func(o *mcphttp.Options) {
		withScopes(o)
		o.MaxSessions = 2
	})
	ran := s.initialize(nil)
	s.post(codex("1", "p", ""), ran)
	first := s.initialize(as(nil, read))
	s.initialize(as(nil, read)) // replaces the only session in which nothing ran
	s.post(ping, ran).wants(t, 200, "", "the session in which something ran")
	s.post(ping, first).wants(t, 404, "", "the other one")
	s.initialize(nil)
	s.initialize(nil)
	s.post(ping, ran).wants(t, 404, "", "after those of a token that runs")
}

// TestUnaskedClient checks that a client is not asked if its token lacks codex:approve, whatever capabilities it declares.
func TestUnaskedClient(t *testing.T) {
	home := testenv.Home(t)
	// A call becomes a task when its question is open.
	s := open(t, asking, &codexserver.Options{Home: home, Tasks: codexserver.TaskOptions{Grace: 50 * time.Millisecond}}, withScopes)
	few := []mcphttp.Scope{run, read}
	h := as(s.initialize(as(nil, few...)), few...)
	for name, got := range map[string]reply{
		"by itself":       s.post(codex("1", "p", ""), h),
		"with all scopes": s.post(codex("2", "p", ""), as(h, mcphttp.Scopes()...)), // the session cannot be asked
	} {
		if strings.Contains(got.body, "elicitation/create") || !strings.Contains(got.body, "decided denied") {
			t.Errorf("in a session, %s: %+v", name, got)
		}
	}
	body, h := modern("1", "tools/call", `{"elicitation":{}}`, call)
	if got := s.post(body, as(h, few...)); strings.Contains(got.body, "input") || !strings.Contains(got.body, "decided denied") {
		t.Errorf("today: %+v", got)
	}
	tasks := `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	body, h = modern("1", "tools/call", tasks, call)
	if got := s.post(body, as(h, few...)); strings.Contains(got.body, "input") {
		t.Errorf("a task: %+v", got)
	}
	// A task of another token: its question stays open, and this token does not receive it.
	id := found(t, s.post(body, h).body, "taskId")
	get, gh := modern("2", "tasks/get", tasks, `"taskId":"`+id+`"`)
	s.soon("a question", func() bool { return strings.Contains(s.post(get, gh).body, `"input_required"`) })
	if got := s.post(get, as(gh, few...)); strings.Contains(got.body, "input") || !strings.Contains(got.body, `"working"`) {
		t.Errorf("the question of a task: %+v", got)
	}
	update, uh := modern("3", "tasks/update", tasks, `"taskId":"`+id+`","inputResponses":{"q1":{"action":"accept","content":{"decision":"approved"}}}`)
	s.post(update, as(uh, few...)).wants(t, 403, "", "an answer")
	s.post(update, as(uh, approve)).wants(t, 200, "", "an answer with codex:approve")
	var end reply
	s.soon("the end of the task", func() bool {
		end = s.post(get, gh)
		return strings.Contains(end.body, `"completed"`)
	})
	if !strings.Contains(end.body, "decided approved") {
		t.Errorf("the end of the task: %+v", end)
	}
}

// TestScopeWords parses and formats scopes.
func TestScopeWords(t *testing.T) {
	for text, want := range map[string][]mcphttp.Scope{
		"": {}, " ": {}, "openid profile": {}, "codex:read": {read}, "codex:read codex:run codex:read": {run, read},
		"codex:Run": {}, "codex:run,codex:read": {}, "codex": {}, "codex:*": {}, "xcodex:run": {}, " codex:approve  codex:run ": {run, approve},
	} {
		got := mcphttp.ParseScopes(text)
		if got == nil || cmp.Diff(want, got) != "" {
			t.Errorf("%q: %#v", text, got)
		}
		if again := mcphttp.ParseScopes(mcphttp.FormatScopes(got)); cmp.Diff(got, again) != "" {
			t.Errorf("%q: %q", text, again)
		}
	}
}
