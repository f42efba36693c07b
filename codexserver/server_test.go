package codexserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/google/go-cmp/cmp"
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

// asking is an engine that asks about one command and reports the decision.
var asking = engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
	out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "c", Command: []string{"git", "init"}, Cwd: "/work"})
	if out.Decision == elicit.Abort {
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: errors.New(out.ForModel())}
	}
	host.Emit(protocol.AgentMessage{Message: string(out.Decision)})
	return nil
})

func action(a mcptypes.ElicitResultAction) func(context.Context, *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error) {
	return func(context.Context, *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error) {
		return &mcptypes.ElicitResult{Action: a}, nil
	}
}

func never(ctx context.Context, _ *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func fails(context.Context, *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error) {
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no")
}

func TestApprovalsAlwaysEnd(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(context.Context, *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error)
		first  string
		blocks int
		failed bool
	}{
		{"accept", action("accept"), "approved", 1, false},
		{"decline", action("decline"), "denied", 1, false},
		{"cancel", action("cancel"), "", 1, true},
		{"no capability", nil, "denied", 2, false},
		{"error", fails, "denied", 2, false},
		{"silence", never, "denied", 2, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connect(t, asking, &codexserver.Options{Approvals: elicit.Options{Timeout: 2 * time.Second}}, tt.answer)
				got, _, err := c.call(t.Context(), "codex", map[string]any{"prompt": "p"})
				if err != nil {
					t.Fatal(err)
				}
				if len(got.Texts) != tt.blocks || got.IsError != tt.failed || !got.Thread {
					t.Errorf("got %+v", got)
				}
				if tt.first != "" && got.Texts[0] != tt.first {
					t.Errorf("first block %q, want %q", got.Texts[0], tt.first)
				}
			})
		})
	}
}

func TestTurnsOfAConversationAreSequential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most int
		var mu sync.Mutex
		e := engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
			}
			mu.Lock()
			running--
			mu.Unlock()
			host.Emit(protocol.AgentMessage{Message: "to " + in[0].Text})
			return nil
		})
		c := connect(t, e, nil, nil)
		_, thread, err := c.call(t.Context(), "codex", map[string]any{"prompt": "0"})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := 1; i < 4; i++ {
			all.Go(func() {
				prompt := fmt.Sprint(i)
				got, _, err := c.call(t.Context(), "codex-reply", map[string]any{"prompt": prompt, "conversationId": thread})
				if err != nil {
					t.Error(err)
				}
				if got.Content != "to "+prompt {
					t.Errorf("prompt %s was answered %q", prompt, got.Content)
				}
			})
		}
		all.Wait()
		if most != 1 {
			t.Errorf("%d turns ran side by side", most)
		}
	})
}

func TestCancelledCallIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan struct{}, 1)
		e := engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
			if in[0].Text == "short" {
				host.Emit(protocol.AgentMessage{Message: "still here"})
				return nil
			}
			began <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		})
		c := connect(t, e, nil, nil)
		_, thread, err := c.call(t.Context(), "codex", map[string]any{"prompt": "short"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-began; cancel() }()
		if _, _, err := c.call(ctx, "codex-reply", map[string]any{"prompt": "long", "threadId": thread}); !errors.Is(err, context.Canceled) {
			t.Errorf("the cancelled call returned %v", err)
		}
		got, _, err := c.call(t.Context(), "codex-reply", map[string]any{"prompt": "short", "threadId": thread})
		if err != nil || got.Content != "still here" {
			t.Errorf("after a cancelled turn: %+v, %v", got, err)
		}
		synctest.Wait()
		want := []string{
			"session_configured", "task_started", "agent_message", "task_complete",
			"task_started", "turn_aborted",
			"task_started", "agent_message", "task_complete",
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if diff := cmp.Diff(want, c.events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestFailedTurnIsAnErrorResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine.TurnFunc(func(context.Context, engine.Host, []protocol.InputItem) error {
			return errors.New("the model is not there")
		})
		c := connect(t, e, nil, nil)
		got, _, err := c.call(t.Context(), "codex", map[string]any{"prompt": "p"})
		if err != nil {
			t.Fatal(err)
		}
		want := result{Texts: []string{"the model is not there"}, Content: "the model is not there", Thread: true, IsError: true}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"session_configured", "task_started", "error"}, c.events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestEndOfInputInterruptsTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, ended := make(chan struct{}), make(chan error, 1)
		e := engine.TurnFunc(func(ctx context.Context, _ engine.Host, _ []protocol.InputItem) error {
			close(began)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return ctx.Err()
		})
		c := connect(t, e, nil, nil)
		go c.call(t.Context(), "codex", map[string]any{"prompt": "p"})
		<-began
		start := time.Now()
		c.Close()
		<-ended
		if took := time.Since(start); took > time.Second {
			t.Errorf("the turn went on for %v", took)
		}
	})
}

func TestBadArgumentsNameTheArgument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, asking, nil, action("accept"))
		for _, tt := range []struct {
			tool string
			args map[string]any
			want string
		}{
			{"codex", map[string]any{}, "codex: argument /prompt is missing"},
			{"codex", map[string]any{"prompt": 5}, "codex: argument /prompt: want a string, found a number"},
			{"codex", map[string]any{"prompt": "p", "cwd": []int{1}}, "codex: argument /cwd: want a string, found an array"},
			{"codex", map[string]any{"prompt": "p", "sandbox": "none"}, `codex: argument /sandbox: "none" must be one of ["read-only" "workspace-write" "danger-full-access"]`},
			{"codex", map[string]any{"prompt": "p", "sandbox": ""}, `codex: argument /sandbox: "" must be one of ["read-only" "workspace-write" "danger-full-access"]`},
			{"codex", map[string]any{"prompt": "p", "approval-policy": ""}, `codex: argument /approval-policy: "" must be one of ["untrusted" "on-failure" "on-request" "never"]`},
			{"codex-reply", map[string]any{"prompt": "p"}, "codex-reply: argument /threadId is missing"},
			{"codex-reply", map[string]any{"prompt": "p", "threadId": "a", "sessionId": "b"}, "codex-reply: arguments /threadId, /conversationId and /sessionId name different conversations"},
			{"codex-reply", map[string]any{"threadId": "a"}, "codex-reply: argument /prompt is missing"},
			{"codex-reply", map[string]any{"threadId": "a", "prompt": "p"}, `codex-reply: no conversation "a" in this session`},
			{"nope", map[string]any{}, `unknown tool "nope"`},
		} {
			got, _, err := c.call(t.Context(), tt.tool, tt.args)
			if err != nil {
				t.Errorf("%s %v: %v", tt.tool, tt.args, err)
				continue
			}
			if !got.IsError || len(got.Texts) != 1 || got.Texts[0] != tt.want {
				t.Errorf("%s %v: got %+v, want %q", tt.tool, tt.args, got, tt.want)
			}
		}
	})
}

func TestEveryRequestIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := jsonrpc.Pipe()
		peer := jsonrpc.NewPeer(ours, nil, nil)
		running, served := make(chan error, 1), make(chan error, 1)
		go func() { running <- peer.Run(context.Background()) }()
		go func() { served <- codexserver.New(asking, nil).Serve(context.Background(), theirs) }()
		for _, tt := range []struct {
			method, params string
			want           jsonrpc.Code
		}{
			{"server/discover", `{}`, jsonrpc.CodeMethodNotFound}, // says no version
			{"prompts/list", `{}`, jsonrpc.CodeMethodNotFound},
			{"resources/read", `{}`, jsonrpc.CodeMethodNotFound}, // before initialize, as before 2025-11-25
			{"initialize", `{"protocolVersion":5}`, jsonrpc.CodeInvalidParams},
			{"tools/call", `{"arguments":{}}`, jsonrpc.CodeInvalidParams},
			{"tools/call", `{"name":7}`, jsonrpc.CodeInvalidParams},
			{"logging/setLevel", `{"level":"loud"}`, jsonrpc.CodeInvalidParams},
		} {
			err := peer.Call(t.Context(), tt.method, json.RawMessage(tt.params), nil)
			if !errors.Is(err, tt.want) {
				t.Errorf("%s %s: %v, want %v", tt.method, tt.params, err, tt.want)
			}
		}
		if err := peer.Call(t.Context(), "ping", nil, nil); err != nil {
			t.Errorf("ping: %v", err)
		}
		peer.Close()
		if err := errors.Join(<-running, <-served); err != nil {
			t.Error(err)
		}
	})
}

// TestResourcesByVersion lists resources for clients of each version that has them.
func TestResourcesByVersion(t *testing.T) {
	for version, has := range map[string]bool{"2024-11-05": false, "2025-06-18": false, "2025-11-25": true} {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := jsonrpc.Pipe()
			peer := jsonrpc.NewPeer(ours, nil, nil)
			running, served := make(chan error, 1), make(chan error, 1)
			go func() { running <- peer.Run(context.Background()) }()
			go func() { served <- codexserver.New(asking, nil).Serve(context.Background(), theirs) }()
			hello, err := mcptypes.Initialize.Call(t.Context(), peer, &mcptypes.InitializeRequestParams{ProtocolVersion: version})
			if err != nil || (hello.Capabilities.Resources != nil) != has {
				t.Errorf("%s: %+v, %v", version, hello, err)
			}
			for _, method := range []string{"resources/list", "resources/templates/list"} {
				err := peer.Call(t.Context(), method, nil, nil)
				if has != (err == nil) || !has && !errors.Is(err, jsonrpc.CodeMethodNotFound) {
					t.Errorf("%s in %s: %v", method, version, err)
				}
			}
			peer.Close()
			if err := errors.Join(<-running, <-served); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestVersions checks the results for clients of every version. All have the thread's id.
func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		asked, spoken             string
		annotations, outputSchema bool
	}{
		{"2024-11-05", "2024-11-05", false, false},
		{"2025-03-26", "2025-03-26", true, false},
		{"2025-06-18", "2025-06-18", true, true},
		{"2025-11-25", "2025-11-25", true, true},
		{"2099-01-01", "2025-11-25", true, true},
		{"bogus", "2025-11-25", true, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := connectRPC(t, echo)
			hello := c.ask(t, "initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}`, tt.asked))
			if !strings.Contains(hello, fmt.Sprintf(`"protocolVersion":%q`, tt.spoken)) {
				t.Errorf("%s: %s", tt.asked, hello)
			}
			tools := c.ask(t, "tools/list", `{}`)
			result := c.ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"},"_meta":{"progressToken":1}}`)
			for what, is := range map[string][2]bool{
				"annotations":       {strings.Contains(tools, `"annotations"`), tt.annotations},
				"outputSchema":      {strings.Contains(tools, `"outputSchema"`), tt.outputSchema},
				"structuredContent": {strings.Contains(result, `"structuredContent":{"threadId":"`), true}, // as Codex did
			} {
				if is[0] != is[1] {
					t.Errorf("%s: %s is there: %v", tt.asked, what, is[0])
				}
			}
			if again := c.ask(t, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`); !strings.Contains(again, "(-32600)") {
				t.Errorf("a second initialize: %s", again)
			}
		})
	}
}

// TestElicitationCapability asks only clients that declared forms.
func TestElicitationCapability(t *testing.T) {
	for capabilities, asked := range map[string]bool{
		`{}`:                                   false,
		`{"elicitation":null}`:                 false,
		`{"elicitation":{}}`:                   true,
		`{"elicitation":{"form":{}}}`:          true,
		`{"elicitation":{"url":{}}}`:           false,
		`{"elicitation":{"form":{},"url":{}}}`: true,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := connectRPC(t, asking)
			c.ask(t, "initialize", fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":"t","version":"1"}}`, capabilities))
			c.ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"}}`)
			was := slices.ContainsFunc(c.heard(), func(line string) bool { return strings.HasPrefix(line, "elicitation/create") })
			if was != asked {
				t.Errorf("%s: asked %v, want %v", capabilities, was, asked)
			}
		})
	}
}

// TestMissingCwdIsTheClientsRoot asks a client with roots for its folder.
func TestMissingCwdIsTheClientsRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got protocol.Config
		e := startFunc(func(ctx context.Context, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
			got = cfg
			return echo.Start(ctx, cfg, host)
		})
		mux := &jsonrpc.Mux{}
		mcptypes.RootsList.Handle(mux, func(context.Context, *mcptypes.ListRootsRequestParams) (*mcptypes.ListRootsResult, error) {
			return &mcptypes.ListRootsResult{Roots: []mcptypes.Root{{Uri: "https://x/"}, {Uri: "file:///some/where"}}}, nil
		})
		ours, theirs := jsonrpc.Pipe()
		peer := jsonrpc.NewPeer(ours, mux, nil)
		running, served := make(chan error, 1), make(chan error, 1)
		go func() { running <- peer.Run(context.Background()) }()
		go func() { served <- codexserver.New(e, nil).Serve(context.Background(), theirs) }()
		for _, params := range []string{
			`{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"t","version":"1"}}`,
		} {
			if err := peer.Call(t.Context(), "initialize", json.RawMessage(params), nil); err != nil {
				t.Fatal(err)
			}
		}
		for arguments, want := range map[string]string{
			`{"prompt":"p"}`:                 "/some/where",
			`{"prompt":"p","cwd":"/else/x"}`: "/else/x",
		} {
			if err := peer.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"codex","arguments":`+arguments+`}`), nil); err != nil {
				t.Fatal(err)
			}
			if got.Cwd != want {
				t.Errorf("%s: cwd %q, want %q", arguments, got.Cwd, want)
			}
		}
		peer.Close()
		if err := errors.Join(<-running, <-served); err != nil {
			t.Error(err)
		}
	})
}

// startFunc is an engine made of its method Start.
type startFunc func(context.Context, protocol.Config, engine.Host) (engine.Conversation, error)

func (f startFunc) Start(ctx context.Context, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	return f(ctx, cfg, host)
}
