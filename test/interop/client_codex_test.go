package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// codexClient is the newest Codex, whose model calls the tools of codex-mcp.
type codexClient struct {
	// modern sets both of the switches that Codex has for MCP 2026-07-28.
	modern bool
}

func (codexClient) release(t *testing.T) string {
	version, err := exec.Command(newest(t), "--version").Output() // "codex-cli 0.169.0"
	if err != nil {
		t.Fatal(err)
	}
	return "npm `@openai/codex` " + strings.TrimPrefix(strings.TrimSpace(string(version)), "codex-cli ")
}

func (c codexClient) cannot(cell string, _ way) string {
	switch {
	case cell == "no capability":
		return "Codex always says that it can be asked."
	case cell == "error":
		return "When Codex cannot show a question it answers `decline` itself."
	case cell == "progress":
		return "Codex asks for progress and shows none."
	case cell == "two questions" && !c.modern:
		return "With the handshake a question of a turn in the background comes as soon as it opens, and Codex answers `cancel` itself when its own turn ends meanwhile."
	}
	return ""
}

func (c codexClient) connect(ctx context.Context, s setup, w *witness) (_ session, err error) {
	d := &codexSession{witness: w, model: providertest.New(), ended: make(chan error, 1), done: make(chan codexItem, 1), over: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	home := filepath.Join(s.Dir, "client")
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	if c.modern {
		s.Env["CODEX_MCP_PROTOCOL_VERSION"] = "2026-07-28"
	}
	var config strings.Builder
	config.WriteString(fmt.Sprintf(`model = "mock-model"
approval_policy = "on-request"
sandbox_mode = "danger-full-access"
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = %q
wire_api = "responses"
[features]
mcp_2026_07_28 = %v
[mcp_servers.codex]
tool_timeout_sec = 60
`, d.model.BaseURL(), c.modern))
	entries := map[string]any{"url": s.URL, "http_headers": map[string]string{"Authorization": "Bearer " + s.Token}}
	if s.URL == "" {
		entries = map[string]any{"command": s.Command[0], "cwd": s.Cwd, "args": s.Command[1:], "env": s.Env}
	}
	for name, value := range entries {
		config.WriteString(name + " = " + inline(value) + "\n")
	}
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config.String()), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, s.Codex, "app-server")
	cmd.Dir = s.Cwd
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "CODEX_HOME=" + home, "TERM=xterm"}
	transport, err := jsonrpc.Command(cmd, 5*time.Second)
	if err != nil {
		return nil, err
	}
	d.peer = jsonrpc.NewPeer(transport, d.handlers(), &jsonrpc.Options{OmitVersion: true})
	go func() { d.ended <- d.peer.Run(context.Background()) }()
	about := json.RawMessage(`{"clientInfo":{"name":"interop_codex","title":"interop","version":"1"},"capabilities":{"experimentalApi":true}}`)
	if err := d.peer.Call(ctx, "initialize", about, nil); err != nil {
		return nil, err
	}
	if err := d.peer.Notify(ctx, "initialized", nil); err != nil {
		return nil, err
	}
	var started struct {
		Thread id `json:"thread"`
	}
	if err := d.peer.Call(ctx, "thread/start", map[string]any{"cwd": s.Cwd}, &started); err != nil {
		return nil, err
	}
	d.thread = started.Thread.ID
	return d, nil
}

// inline writes a value in TOML: a string, or a list or an inline table of strings.
func inline(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%q", v)
	case []string:
		return strings.ReplaceAll(fmt.Sprintf("%q", v), `" "`, `", "`)
	case map[string]string:
		var parts []string
		for name, s := range v {
			parts = append(parts, fmt.Sprintf("%s = %q", name, s))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	panic(fmt.Sprintf("%T", v))
}

// codexSession is a running app-server with one conversation.
type codexSession struct {
	*witness
	model  *providertest.Server // the client's, not the server's
	peer   *jsonrpc.Peer
	ended  chan error
	thread string
	done   chan codexItem // the call of a tool that has ended
	over   chan struct{}  // a turn has ended

	mu   sync.Mutex
	turn string
}

// codexItem is a call of an MCP server's tool.
type codexItem struct {
	Type   string           `json:"type"`
	Status string           `json:"status"`
	Result *json.RawMessage `json:"result"`
	Error  *question        `json:"error"` // its message
}

type id struct {
	ID string `json:"id"`
}

// codexQuestion is a question for the user of Codex.
type codexQuestion struct {
	question
	Meta struct {
		Kind string `json:"codex_approval_kind"`
	} `json:"_meta"`
}

func (s *codexSession) handlers() *jsonrpc.Mux {
	mux := &jsonrpc.Mux{}
	jsonrpc.Handle(mux, "mcpServer/elicitation/request", func(ctx context.Context, q codexQuestion) (any, error) {
		if q.Meta.Kind == "mcp_tool_call" { // whether the tool may be called at all
			return map[string]any{"action": "accept", "content": map[string]any{}}, nil
		}
		action, err := s.elicit(ctx, q.Message)
		action, content := filledIn(action)
		return map[string]any{"action": action, "content": content}, err
	})
	jsonrpc.HandleNotify(mux, "turn/started", func(_ context.Context, n struct {
		Turn id `json:"turn"`
	}) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.turn = n.Turn.ID
		return nil
	})
	jsonrpc.HandleNotify(mux, "item/completed", func(_ context.Context, n struct {
		Item codexItem `json:"item"`
	}) error {
		if n.Item.Type == "mcpToolCall" {
			s.done <- n.Item
		}
		return nil
	})
	jsonrpc.HandleNotify(mux, "turn/completed", func(context.Context, json.RawMessage) error { s.over <- struct{}{}; return nil })
	return mux
}

// offered returns the namespace and the names of the server's tools as a model sees them.
func offered(r providertest.Request) (namespace string, names []string) {
	var body struct {
		Tools []struct {
			Type, Name string
			Tools      []struct{ Name string }
		}
	}
	_ = json.Unmarshal(r.Body, &body) // a body that is not a request offers nothing
	for _, t := range body.Tools {
		if t.Type != "namespace" || !strings.Contains(t.Name, "codex") {
			continue
		}
		namespace = t.Name
		for _, tool := range t.Tools {
			names = append(names, strings.ReplaceAll(tool.Name, "_", "-")) // Codex writes codex_reply
		}
	}
	return namespace, names
}

func (s *codexSession) list(ctx context.Context) ([]string, error) {
	s.model.Add(providertest.Say("listed"))
	if err := s.say(ctx); err != nil {
		return nil, err
	}
	requests := s.model.Requests()
	_, names := offered(requests[len(requests)-1])
	return names, nil
}

// say runs a turn to its end.
func (s *codexSession) say(ctx context.Context) error {
	err := s.peer.Call(ctx, "turn/start", map[string]any{"threadId": s.thread, "input": []any{map[string]any{"type": "text", "text": "go on"}}}, nil)
	if err != nil {
		return err
	}
	select {
	case <-s.over:
		return nil
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	s.mu.Lock()
	turn := s.turn
	s.mu.Unlock()
	err = s.peer.Call(stop, "turn/interrupt", map[string]any{"threadId": s.thread, "turnId": turn}, nil)
	select {
	case <-s.over:
	case <-stop.Done():
		err = errors.Join(err, errors.New("the turn of the client does not end"))
	}
	return errors.Join(ctx.Err(), err)
}

// call has the client's model call the tool.
func (s *codexSession) call(ctx context.Context, c call) (r result, err error) {
	arguments, err := json.Marshal(c.Arguments)
	if err != nil {
		return r, err
	}
	s.model.Reset(providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
		namespace, _ := offered(r)
		return namespacedCall(namespace, strings.ReplaceAll(c.Tool, "-", "_"), string(arguments))
	}}, providertest.Say("the client's model is done"))
	if err := s.say(ctx); err != nil {
		select {
		case <-s.done: // as it was cancelled
		default:
		}
		return r, err
	}
	select {
	case item := <-s.done:
		if item.Error != nil {
			return r, errors.New(item.Error.Message)
		}
		if item.Result == nil {
			return r, errors.New("the call has neither a result nor an error")
		}
		if err := json.Unmarshal(*item.Result, &r); err != nil {
			return r, err
		}
		r.IsError = item.Status == "failed" // the result's own member is not shown
		return r, nil
	default:
		return r, fmt.Errorf("the client's model could not call %s", c.Tool)
	}
}

// namespacedCall returns a model's response that calls a tool of a namespace.
func namespacedCall(namespace, tool, arguments string) providertest.Turn {
	item, err := json.Marshal(map[string]any{
		"type": "response.output_item.done", "output_index": 0,
		"item": map[string]any{"type": "function_call", "id": "fc_1", "call_id": "client_1", "namespace": namespace, "name": tool, "arguments": arguments},
	})
	if err != nil {
		panic(err) // strings can be encoded
	}
	const rest = `"object":"response","output":[],"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":2}`
	return providertest.Turn{Body: "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"status\":\"in_progress\"," + rest + "}}\n\n" +
		"event: response.output_item.done\ndata: " + string(item) + "\n\n" +
		"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"status\":\"completed\"," + rest + "}}\n\n"}
}

func (s *codexSession) close() error {
	defer s.model.Close()
	if s.peer == nil {
		return nil
	}
	err := s.peer.Close()
	return errors.Join(err, <-s.ended)
}
