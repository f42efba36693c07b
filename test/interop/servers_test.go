package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestServers has the model of the native engine call a tool of the official SDKs' servers by URL, in
// both eras. The tool asks; the question reaches the user of codex-mcp's client, and the answer the
// tool.
func TestServers(t *testing.T) {
	t.Parallel()
	server := ours(t)
	typescript := func(name, release string) func(*testing.T) string {
		return func(t *testing.T) string {
			t.Logf("%s", npmRelease(t, release))
			return "http://" + start(t, []string{node(), filepath.Join("typescript", "servers.mjs"), name}, []string{nodeCache + "=" + os.Getenv(nodeCache)},
				func(cmd *exec.Cmd) (io.ReadCloser, error) { return cmd.StdoutPipe() }, "http://")
		}
	}
	for _, s := range []struct {
		name string
		url  func(*testing.T) string
		era  string // in which the client talks to it
	}{
		{"go-sdk", goServer(&mcp.ServerOptions{}, &mcp.StreamableHTTPOptions{Stateless: true}), "modern"},
		{"go-sdk with sessions", goServer(&mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25", "2025-06-18"}}, nil), "legacy"},
		{"go-sdk as it is", goServer(nil, nil), "legacy"},
		{"TypeScript 2", typescript("server", "@modelcontextprotocol/server"), "modern"},
		{"TypeScript 1", typescript("sdk", "@modelcontextprotocol/sdk"), "legacy"},
	} {
		for _, tt := range []struct{ answer, says string }{
			{`{"action":"accept","content":{"sure":true}}`, "deployed"},
			{`{"action":"accept","content":{"sure":false}}`, "not deployed: accept"},
			{`{"action":"decline"}`, "not deployed: decline"},
		} {
			t.Run(s.name+"/"+tt.says, func(t *testing.T) {
				t.Parallel()
				model := providertest.New(
					providertest.Call(providertest.ToolCall{ID: "c1", Name: "docs__deploy", Arguments: `{}`}), providertest.Say("done"))
				t.Cleanup(model.Close)
				home := newHome(t, model, "chat")
				appendTo(t, filepath.Join(home, "config.toml"), fmt.Sprintf("[mcp_servers.docs]\nurl = %q\n", s.url(t)))
				asked, r := callOnce(t, engines(t)[0].open(t, server, home, t.TempDir()), tt.answer)
				if r.IsError || len(r.Content) == 0 || !strings.Contains(r.Content[0].Text, "done") {
					t.Errorf("the result is %+v", r)
				}
				if len(asked) != 1 || asked[0] != `The MCP server "docs" asks: "Deploy to production?"` {
					t.Errorf("asked %q", asked)
				}
				requests := model.Requests()
				if len(requests) != 2 {
					t.Fatalf("%d requests to the model", len(requests))
				}
				want := []providertest.ToolOutput{{CallID: "c1", Output: fmt.Sprintf(`[{"type":"text","text":"%s, %s"}]`, tt.says, s.era)}}
				if diff := cmp.Diff(want, requests[1].ToolOutputs()); diff != "" {
					t.Errorf("the model got (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// goServer returns what serves the tool with the official SDK for Go. Its result that asks becomes a
// request of the server in a session.
func goServer(o *mcp.ServerOptions, h *mcp.StreamableHTTPOptions) func(*testing.T) string {
	return func(t *testing.T) string {
		s := mcp.NewServer(&mcp.Implementation{Name: "docs", Version: "1"}, o)
		s.AddTool(&mcp.Tool{Name: "deploy", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answer, ok := r.Params.InputResponses["sure"].(*mcp.ElicitResult)
			if !ok {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"sure": &mcp.ElicitParams{
					Message:         "Deploy to production?",
					RequestedSchema: json.RawMessage(`{"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]}`),
				}}}, nil
			}
			era := "modern"
			if r.Session.ID() != "" {
				era = "legacy"
			}
			says := "not deployed: " + answer.Action
			if answer.Action == "accept" && answer.Content["sure"] == true {
				says = "deployed"
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: says + ", " + era}}}, nil
		})
		served := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, h))
		t.Cleanup(served.Close)
		return served.URL
	}
}

func appendTo(t *testing.T, file, text string) {
	t.Helper()
	old, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append(old, text...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// callOnce connects, calls codex, and answers its questions. It returns what was asked.
func callOnce(t *testing.T, s setup, answer string) (asked []string, r result) {
	t.Helper()
	transport, err := jsonrpc.Command(s.command(t.Context()), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	mux := &jsonrpc.Mux{}
	mux.HandleRaw("elicitation/create", func(_ context.Context, params json.RawMessage) (any, error) {
		var q struct{ Message string }
		err := json.Unmarshal(params, &q)
		mu.Lock()
		asked = append(asked, q.Message)
		mu.Unlock()
		return json.RawMessage(answer), err
	})
	peer := jsonrpc.NewPeer(transport, mux, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	ended := make(chan error, 1)
	go func() { ended <- peer.Run(context.Background()) }()
	defer func() {
		if err := peer.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for _, call := range []struct {
		method, params string
		result         any
	}{
		{"initialize", `{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"interop","version":"1"}}`, nil},
		{"tools/call", fmt.Sprintf(`{"name":"codex","arguments":{"prompt":"go","cwd":%q,"approval-policy":"untrusted","sandbox":"workspace-write"}}`, s.Cwd), &r},
	} {
		if err := peer.Call(ctx, call.method, json.RawMessage(call.params), call.result); err != nil {
			t.Fatalf("%s: %v", call.method, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	return asked, r
}
