package codexserver_test

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// client is an MCP client in the test's own program.
type client struct {
	*jsonrpc.Peer
	ended chan error // what Serve returned

	mu     sync.Mutex
	events []string // types, in order
	logs   []string
}

// connect serves e to a client that answers questions with answer. With a nil answer the
// client has no elicitation.
func connect(t *testing.T, e engine.Engine, o *codexserver.Options, answer func(context.Context, *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error)) *client {
	t.Helper()
	c := &client{ended: make(chan error, 1)}
	mux := &jsonrpc.Mux{}
	jsonrpc.HandleNotify(mux, "codex/event", func(_ context.Context, p struct {
		Msg struct {
			Type string `json:"type"`
		} `json:"msg"`
	}) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.events = append(c.events, p.Msg.Type)
	})
	mcptypes.NotificationsMessage.Handle(mux, func(_ context.Context, p *mcptypes.LoggingMessageNotificationParams) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.logs = append(c.logs, string(p.Level))
		return nil
	})
	var capabilities mcptypes.ClientCapabilities
	if answer != nil {
		capabilities.Elicitation = map[string]json.RawMessage{}
		mcptypes.ElicitationCreate.Handle(mux, answer)
	}
	ours, theirs := jsonrpc.Pipe()
	c.Peer = jsonrpc.NewPeer(ours, mux, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	running := make(chan error, 1)
	go func() { running <- c.Run(context.Background()) }()
	go func() { c.ended <- codexserver.New(e, o).Serve(context.Background(), theirs) }()
	t.Cleanup(func() {
		c.Close()
		if err := <-running; err != nil {
			t.Errorf("client: %v", err)
		}
		if err := <-c.ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	_, err := mcptypes.Initialize.Call(t.Context(), c, &mcptypes.InitializeRequestParams{
		ProtocolVersion: mcptypes.ProtocolVersion,
		Capabilities:    capabilities,
		ClientInfo:      mcptypes.Implementation{Name: "test", Version: "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// asking is an engine that asks about one command and reports the decision.
var asking = engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
	out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "c", Command: []string{"git", "init"}, Cwd: "/work"})
	if out.Decision == elicit.Abort {
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: errors.New(out.ForModel())}
	}
	host.Emit(protocol.AgentMessage{Message: string(out.Decision)})
	return nil
})

// startFunc is an engine made of its method Start.
type startFunc func(context.Context, protocol.Config, engine.Host) (engine.Conversation, error)

func (f startFunc) Start(ctx context.Context, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	return f(ctx, cfg, host)
}

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

func (c *resumedThread) ID() string { return c.id }

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

func (*full) Models(context.Context) (*protocol.ModelList, error) {
	return &protocol.ModelList{}, nil
}

// threadOf returns the thread's id in a tool's result.
func threadOf(t *testing.T, result string) string {
	t.Helper()
	var r struct {
		StructuredContent struct{ ThreadID string }
	}
	if err := json.Unmarshal([]byte(result), &r); err != nil || r.StructuredContent.ThreadID == "" {
		t.Fatalf("no threadId in %s (%v)", result, err)
	}
	return r.StructuredContent.ThreadID
}

// result is the part of a tool's result that the tests check.
type result struct {
	Texts   []string // those for everybody
	Content string
	Thread  bool // there is a thread id
	IsError bool
}

func (c *client) call(ctx context.Context, tool string, arguments map[string]any) (result, string, error) {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return result{}, "", err
	}
	res, err := mcptypes.ToolsCall.Call(ctx, c, &mcptypes.CallToolRequestParams{Name: tool, Arguments: raw})
	if err != nil {
		return result{}, "", err
	}
	var structured struct{ ThreadID, Content string }
	if err := json.Unmarshal(res.StructuredContent, &structured); err != nil {
		return result{}, "", err
	}
	r := result{Content: structured.Content, Thread: structured.ThreadID != "", IsError: res.IsError != nil && *res.IsError}
	for _, block := range res.Content {
		if text := block.(*mcptypes.TextContent); text.Annotations == nil {
			r.Texts = append(r.Texts, text.Text)
		}
	}
	return r, structured.ThreadID, nil
}
