package codexserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// full is an engine with every optional interface.
type full struct {
	engine.TurnFunc

	mu   sync.Mutex
	made []string // the conversations, in order
}

func (e *full) Start(ctx context.Context, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	if cfg.Profile == "nosuch" {
		return nil, &engine.ConfigError{Err: errors.New("no profile nosuch")}
	}
	c, err := e.TurnFunc.Start(ctx, cfg, host)
	if err == nil {
		e.mu.Lock()
		e.made = append(e.made, c.ID())
		e.mu.Unlock()
	}
	return c, err
}

func (e *full) FindRollout(_ context.Context, id string) (string, error) {
	if id != "past" {
		return "", engine.ErrNotFound
	}
	return "/rollouts/past", nil
}

func (e *full) Resume(ctx context.Context, path string, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	id, ok := strings.CutPrefix(path, "/rollouts/")
	if !ok {
		return nil, engine.ErrNotFound
	}
	host.Emit(protocol.SessionConfigured{SessionID: id, Model: "m", InitialMessages: []json.RawMessage{json.RawMessage(`{"type":"user_message","message":"before"}`)}})
	return &resumedThread{e.TurnFunc, id, host}, nil
}

type resumedThread struct {
	f    engine.TurnFunc
	id   string
	host engine.Host
}

func (c *resumedThread) ID() string   { return c.id }
func (c *resumedThread) Close() error { return nil }
func (c *resumedThread) Turn(ctx context.Context, in protocol.TurnInput) error {
	if err := c.f(ctx, c.host, in.Items); err != nil {
		return err
	}
	c.host.Emit(protocol.TaskComplete{LastAgentMessage: &in.Items[0].Text})
	return nil
}

func (e *full) List(context.Context, protocol.ListConversationsParams) (*protocol.ListConversationsResult, error) {
	return &protocol.ListConversationsResult{Items: []protocol.ConversationSummary{{ConversationID: "past", Path: "/rollouts/past", Preview: "before"}}}, nil
}

func (e *full) Archive(_ context.Context, p protocol.ArchiveConversationParams) error {
	if p.RolloutPath != "/rollouts/"+p.ConversationID {
		return &engine.RefusedError{Err: errors.New("not this conversation's rollout")}
	}
	return nil
}

func (e *full) AuthStatus(context.Context, protocol.GetAuthStatusParams) (*protocol.GetAuthStatusResult, error) {
	return &protocol.GetAuthStatusResult{AuthMethod: protocol.AuthAPIKey}, nil
}
func (e *full) LoginAPIKey(context.Context, string) error { return nil }
func (e *full) LoginChatGPT(_ context.Context, done func(protocol.LoginChatGPTComplete)) (*protocol.LoginChatGPTResult, error) {
	go done(protocol.LoginChatGPTComplete{LoginID: "l", Success: true})
	return &protocol.LoginChatGPTResult{LoginID: "l", AuthURL: "http://127.0.0.1/"}, nil
}
func (e *full) CancelLogin(_ context.Context, id string) error {
	if id != "l" {
		return engine.ErrNotFound
	}
	return nil
}
func (e *full) Logout(context.Context) error { return nil }
func (e *full) UserInfo(context.Context) (*protocol.UserInfoResult, error) {
	return &protocol.UserInfoResult{}, nil
}
func (e *full) SavedConfig(context.Context) (*protocol.UserSavedConfig, error) {
	return &protocol.UserSavedConfig{Profiles: map[string]protocol.SavedProfile{}}, nil
}
func (e *full) SetDefaultModel(context.Context, protocol.SetDefaultModelParams) error { return nil }
func (e *full) ExecOneOff(_ context.Context, p protocol.ExecOneOffCommandParams) (*protocol.ExecOneOffCommandResult, error) {
	return &protocol.ExecOneOffCommandResult{Stdout: p.Command[0]}, nil
}
func (e *full) SearchFiles(ctx context.Context, p protocol.FuzzyFileSearchParams) (*protocol.FuzzyFileSearchResult, error) {
	if p.Query == "slow" {
		<-ctx.Done()
	}
	return &protocol.FuzzyFileSearchResult{Files: []protocol.FuzzyFile{}}, nil
}
func (e *full) GitDiffToRemote(_ context.Context, cwd string) (*protocol.GitDiffToRemoteResult, error) {
	if cwd != "/repo" {
		return nil, &engine.RefusedError{Err: errors.New("no repository")}
	}
	return &protocol.GitDiffToRemoteResult{SHA: "0"}, nil
}

// rpcClient is a client of the JSON-RPC methods that keeps what it receives.
type rpcClient struct {
	*jsonrpc.Peer
	decision json.RawMessage // its answer to approvals

	mu       sync.Mutex
	told     []string // method, and params without ids
	progress string   // the last message of notifications/progress
}

func (c *rpcClient) ServeRPC(_ context.Context, r *jsonrpc.Request) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var p struct {
		ID  *string `json:"id"`
		Msg struct{ Message string }

		Message string // of progress
	}
	if err := json.Unmarshal(r.Params, &p); err != nil {
		return nil, err
	}
	if r.Method == "notifications/progress" {
		c.progress = p.Message
	}
	line := r.Method
	if p.ID != nil {
		line += " " + *p.ID
	}
	c.told = append(c.told, strings.TrimSpace(line+" "+p.Msg.Message))
	switch {
	case strings.HasSuffix(r.Method, "Approval"):
		return c.decision, nil
	case r.Method == "elicitation/create":
		return json.RawMessage(`{"action":"decline"}`), nil
	}
	return nil, nil
}

func connectRPC(t *testing.T, e engine.Engine) *rpcClient {
	t.Helper()
	return connectWith(t, e, nil)
}

func connectWith(t *testing.T, e engine.Engine, o *codexserver.Options) *rpcClient {
	t.Helper()
	c := &rpcClient{decision: json.RawMessage(`{"decision":"approved"}`)}
	ours, theirs := jsonrpc.Pipe()
	c.Peer = jsonrpc.NewPeer(ours, c, nil)
	running, served := make(chan error, 1), make(chan error, 1)
	go func() { running <- c.Run(context.Background()) }()
	go func() { served <- codexserver.New(e, o).Serve(context.Background(), theirs) }()
	t.Cleanup(func() {
		c.Close()
		if err := errors.Join(<-running, <-served); err != nil {
			t.Error(err)
		}
	})
	return c
}

// ask calls a method with params as text. In it, %s stands for the thread.
func (c *rpcClient) ask(t *testing.T, method, params string) string {
	t.Helper()
	var result json.RawMessage
	if err := c.Call(t.Context(), method, json.RawMessage(params), &result); err != nil {
		return err.Error()
	}
	return string(result)
}

func (c *rpcClient) newConversation(t *testing.T) string {
	t.Helper()
	var result protocol.NewConversationResult
	if err := c.Call(t.Context(), "newConversation", json.RawMessage(`{}`), &result); err != nil {
		t.Fatal(err)
	}
	return result.ConversationID
}

func (c *rpcClient) heard() []string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.told
	c.told = nil
	return told
}

var echo = engine.TurnFunc(func(_ context.Context, host engine.Host, in []protocol.InputItem) error {
	if len(in) > 0 {
		host.Emit(protocol.AgentMessage{Message: in[0].Text})
	}
	return nil
})

func TestListenersGetEveryEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connectRPC(t, &full{TurnFunc: echo})
		id := c.newConversation(t)
		send := fmt.Sprintf(`{"conversationId":%q,"items":[{"type":"text","data":{"text":"hi"}}]}`, id)
		turn := func(n string) []string {
			return []string{"codex/event/task_started " + n, "codex/event/agent_message " + n + " hi", "codex/event/task_complete " + n}
		}

		// No client listens: the events wait for the first listener.
		if got := c.ask(t, "sendUserMessage", send); got != "{}" {
			t.Fatal(got)
		}
		if got := c.heard(); len(got) != 0 {
			t.Errorf("without a listener: %q", got)
		}
		var first, second protocol.AddConversationListenerResult
		listen := json.RawMessage(fmt.Sprintf(`{"conversationId":%q}`, id))
		if err := c.Call(t.Context(), "addConversationListener", listen, &first); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(turn("0"), c.heard()); diff != "" {
			t.Errorf("late listener (-want +got):\n%s", diff)
		}

		// Two listeners: each gets every event.
		if err := c.Call(t.Context(), "addConversationListener", listen, &second); err != nil {
			t.Fatal(err)
		}
		c.ask(t, "sendUserMessage", send)
		var twice []string
		for _, line := range turn("1") {
			twice = append(twice, line, line)
		}
		if diff := cmp.Diff(twice, c.heard()); diff != "" {
			t.Errorf("two listeners (-want +got):\n%s", diff)
		}

		// One less; then messages in the order in which they were sent.
		c.ask(t, "removeConversationListener", fmt.Sprintf(`{"subscriptionId":%q}`, first.SubscriptionID))
		for range 3 {
			if err := c.Notify(t.Context(), "none", nil); err != nil {
				t.Fatal(err)
			}
			c.Start(t.Context(), "sendUserMessage", json.RawMessage(send))
		}
		if diff := cmp.Diff(append(append(turn("2"), turn("3")...), turn("4")...), c.heard()); diff != "" {
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
			c := connectWith(t, asking, &codexserver.Options{Approvals: elicit.Options{NoLegacyFlat: true}})
			c.decision = json.RawMessage(decision)
			id := c.newConversation(t)
			c.ask(t, "addConversationListener", fmt.Sprintf(`{"conversationId":%q}`, id))
			c.ask(t, "sendUserMessage", fmt.Sprintf(`{"conversationId":%q,"items":[]}`, id))
			got := c.heard()
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
		c := connectRPC(t, waiting)
		id := c.newConversation(t)
		named := fmt.Sprintf(`{"conversationId":%q}`, id)
		c.ask(t, "addConversationListener", named)
		if got := c.ask(t, "interruptConversation", named); !strings.Contains(got, "(-32600)") {
			t.Errorf("interrupt of nothing: %s", got)
		}
		c.ask(t, "sendUserMessage", fmt.Sprintf(`{"conversationId":%q,"items":[]}`, id))
		synctest.Wait()
		if got := c.ask(t, "interruptConversation", named); got != `{"abortReason":"interrupted"}` {
			t.Errorf("interrupt: %s", got)
		}
		c.ask(t, "sendUserMessage", fmt.Sprintf(`{"conversationId":%q,"items":[]}`, id))
		want := []string{"codex/event/task_started 0", "codex/event/turn_aborted 0", "codex/event/task_started 2"}
		if diff := cmp.Diff(want, c.heard()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestResumeByPathAndByTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connectRPC(t, &full{TurnFunc: echo})
		const want = `{"conversationId":"past","model":"m","initialMessages":[{"type":"user_message","message":"before"}]}`
		for range 2 { // the second time it replaces itself
			if got := c.ask(t, "resumeConversation", `{"path":"/rollouts/past"}`); got != want {
				t.Errorf("resume: %s", got)
			}
			if diff := cmp.Diff([]string{"codex/event"}, c.heard()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		if got := c.ask(t, "resumeConversation", `{"path":"/elsewhere"}`); !strings.Contains(got, "not found") {
			t.Errorf("resume of nothing: %s", got)
		}

		other := connectRPC(t, &full{TurnFunc: echo})
		got := other.ask(t, "tools/call", `{"name":"codex-reply","arguments":{"prompt":"again","sessionId":"past"}}`)
		if !strings.Contains(got, `"text":"again"`) || strings.Contains(got, "isError") {
			t.Errorf("reply to an earlier process's conversation: %s", got)
		}
		got = other.ask(t, "tools/call", `{"name":"codex-reply","arguments":{"prompt":"again","threadId":"nosuch"}}`)
		if !strings.Contains(got, `"isError":true`) {
			t.Errorf("reply to nothing: %s", got)
		}
	})
}

func TestNotificationsAfterLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connectRPC(t, &full{TurnFunc: echo})
		for _, tt := range []struct{ method, params, want, told string }{
			{"loginApiKey", `{"apiKey":"sk"}`, `{}`, "authStatusChange"},
			{"logoutChatGpt", `{}`, `{}`, "authStatusChange"},
			{"loginChatGpt", `{}`, `{"loginId":"l","authUrl":"http://127.0.0.1/"}`, "loginChatGptComplete authStatusChange"},
			{"cancelLoginChatGpt", `{"loginId":"l"}`, `{}`, ""},
		} {
			if got := c.ask(t, tt.method, tt.params); got != tt.want {
				t.Errorf("%s: %s", tt.method, got)
			}
			if got := strings.Join(c.heard(), " "); got != tt.told {
				t.Errorf("%s: told %q, want %q", tt.method, got, tt.told)
			}
		}
	})
}

func TestSearchCancelsPreviousSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connectRPC(t, &full{TurnFunc: echo})
		slow := c.Start(t.Context(), "fuzzyFileSearch", json.RawMessage(`{"query":"slow","roots":["/"],"cancellationToken":"t"}`))
		synctest.Wait()
		if got := c.ask(t, "fuzzyFileSearch", `{"query":"x","roots":["/"],"cancellationToken":"t"}`); got != `{"files":[]}` {
			t.Error(got)
		}
		if err := slow.Result(nil); err != nil {
			t.Error(err)
		}
	})
}

// TestBadParamsNameTheMember sends every method wrong params. Each answer names the member,
// and the next request works.
func TestBadParamsNameTheMember(t *testing.T) {
	const turn = `{"conversationId":"%s","items":[],"cwd":"/","approvalPolicy":"never","sandboxPolicy":{"mode":"read-only"},"model":"m","summary":"auto"`
	synctest.Test(t, func(t *testing.T) {
		c := connectRPC(t, &full{TurnFunc: echo})
		id := c.newConversation(t)
		for _, tt := range []struct{ method, params, want string }{
			{"newConversation", `{"model":5}`, "/model"},
			{"newConversation", `{"approvalPolicy":"bogus"}`, "/approvalPolicy"},
			{"newConversation", `{"sandbox":"bogus"}`, "/sandbox"},
			{"newConversation", `{"config":[]}`, "/config"},
			{"newConversation", `{"includePlanTool":"yes"}`, "/includePlanTool"},
			{"newConversation", `{"profile":"nosuch"}`, "(-32600)"},
			{"newConversation", `[]`, "(-32602)"},
			{"resumeConversation", `{}`, "/path"},
			{"resumeConversation", `{"path":"/rollouts/past","overrides":{"sandbox":"x"}}`, "/overrides/sandbox"},
			{"listConversations", `{"pageSize":"many"}`, "/pageSize"},
			{"listConversations", `{"pageSize":-1}`, "/pageSize"},
			{"archiveConversation", `{"conversationId":"past"}`, "/rolloutPath"},
			{"archiveConversation", `{"rolloutPath":"x"}`, "/conversationId"},
			{"archiveConversation", `{"conversationId":"past","rolloutPath":"x"}`, "(-32600)"},
			{"addConversationListener", `{}`, "/conversationId"},
			{"addConversationListener", `{"conversationId":"nosuch"}`, "nosuch"},
			{"removeConversationListener", `{}`, "/subscriptionId"},
			{"removeConversationListener", `{"subscriptionId":"nosuch"}`, "nosuch"},
			{"sendUserMessage", `{"conversationId":"%s"}`, "/items"},
			{"sendUserMessage", `{"conversationId":"%s","items":{}}`, "/items"},
			{"sendUserMessage", `{"conversationId":"%s","items":[{"type":"text","text":"flat"}]}`, "/items/0"},
			{"sendUserMessage", `{"conversationId":"%s","items":[{"type":"video","data":{}}]}`, "/items/0"},
			{"sendUserMessage", `{"conversationId":"nosuch","items":[]}`, "nosuch"},
			{"sendUserTurn", `{"conversationId":"%s","items":[]}`, "/cwd"},
			{"sendUserTurn", turn + `,"effort":"huge"}`, "/effort"},
			{"sendUserTurn", strings.Replace(turn, "never", "x", 1) + `}`, "/approvalPolicy"},
			{"sendUserTurn", strings.Replace(turn, "read-only", "x", 1) + `}`, "/sandboxPolicy/mode"},
			{"sendUserTurn", strings.Replace(turn, "auto", "x", 1) + `}`, "/summary"},
			{"interruptConversation", `{"conversationId":7}`, "/conversationId"},
			{"loginApiKey", `{}`, "/apiKey"},
			{"loginApiKey", `{"apiKey":["sk-secret"]}`, "/apiKey"},
			{"cancelLoginChatGpt", `{}`, "/loginId"},
			{"cancelLoginChatGpt", `{"loginId":"nosuch"}`, "nosuch"},
			{"getAuthStatus", `{"includeToken":"x"}`, "/includeToken"},
			{"setDefaultModel", `{"reasoningEffort":"huge"}`, "/reasoningEffort"},
			{"gitDiffToRemote", `{}`, "/cwd"},
			{"gitDiffToRemote", `{"cwd":"/elsewhere"}`, "/elsewhere"},
			{"execOneOffCommand", `{}`, "command must not be empty"},
			{"execOneOffCommand", `{"command":"ls"}`, "/command"},
			{"execOneOffCommand", `{"command":["ls"],"timeoutMs":-1}`, "/timeoutMs"},
			{"execOneOffCommand", `{"command":["ls","a\u0000b"]}`, "/command/1"},
			{"execOneOffCommand", `{"command":["ls"],"cwd":"a\u0000"}`, "/cwd"},
			{"execOneOffCommand", `{"command":["ls"],"sandboxPolicy":{"mode":"none"}}`, "/sandboxPolicy/mode"},
			{"fuzzyFileSearch", `{"query":"x"}`, "/roots"},
			{"fuzzyFileSearch", `{"query":5,"roots":[]}`, "/query"},
			{"logging/setLevel", `{}`, "/level"},
			{"tools/call", `{"name":"codex","arguments":[]}`, "/arguments"},
			{"tools/call", `{"name":"codex","_meta":{"progressToken":1.5}}`, "/_meta/progressToken"},
		} {
			got := c.ask(t, tt.method, strings.ReplaceAll(tt.params, "%s", id))
			if !strings.Contains(got, tt.want) || !strings.Contains(got, "(-32") {
				t.Errorf("%s %s: %s, want %q", tt.method, tt.params, got, tt.want)
			}
			if strings.Contains(got, "sk-secret") {
				t.Errorf("%s tells a secret: %s", tt.method, got)
			}
			if got := c.ask(t, "ping", `{}`); got != "{}" {
				t.Fatalf("after %s %s: ping: %s", tt.method, tt.params, got)
			}
		}
		for _, tt := range []struct{ method, params string }{
			{"sendUserTurn", turn + `,"effort":null}`},
			{"newConversation", `{"model":null,"unknown":1}`},
			{"execOneOffCommand", `{"command":["ls"],"sandboxPolicy":{"mode":"read-only"}}`},
			{"gitDiffToRemote", `{"cwd":"/repo"}`},
			{"getUserSavedConfig", `{}`}, {"getUserAgent", `{}`}, {"userInfo", `{}`}, {"getAuthStatus", `{}`},
			{"setDefaultModel", `{"model":null}`}, {"listConversations", `{}`},
			{"archiveConversation", `{"conversationId":"past","rolloutPath":"/rollouts/past"}`},
		} {
			if got := c.ask(t, tt.method, strings.ReplaceAll(tt.params, "%s", id)); strings.Contains(got, "(-32") {
				t.Errorf("%s %s: %s", tt.method, tt.params, got)
			}
		}
	})
}

func TestMethodsOfAPlainEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connectRPC(t, echo)
		for _, method := range []string{"resumeConversation", "listConversations", "archiveConversation", "loginApiKey", "getUserSavedConfig", "execOneOffCommand", "fuzzyFileSearch", "gitDiffToRemote"} {
			if got := c.ask(t, method, `{}`); !strings.Contains(got, "(-32601)") {
				t.Errorf("%s: %s", method, got)
			}
		}
	})
}

func (*full) Models(context.Context) (*protocol.ModelList, error) {
	return &protocol.ModelList{}, nil
}
