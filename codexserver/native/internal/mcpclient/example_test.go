package mcpclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/mcpclient"
)

// A server with one tool, reached by its URL.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&m) // the client sends JSON
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, map[string]string{
			"server/discover": `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`,
			"tools/list":      `{"resultType":"complete","tools":[{"name":"find","description":"Finds pages.","inputSchema":{"type":"object"}}]}`,
			"tools/call":      `{"resultType":"complete","content":[{"type":"text","text":"three pages"}]}`,
		}[m.Method])
	}))
	defer server.Close()

	ctx := context.Background()
	client, err := mcpclient.Start(ctx, mcpclient.Options{
		Name: "docs", Server: config.MCPServer{URL: server.URL},
		HTTP: http.DefaultTransport, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	for _, tool := range client.Tools {
		fmt.Println(tool.Name+":", tool.Description)
	}
	result, err := client.Call(ctx, "find", json.RawMessage(`{"words":"approvals"}`))
	fmt.Println(string(result), err)
	// Output:
	// find: Finds pages.
	// {"resultType":"complete","content":[{"type":"text","text":"three pages"}]} <nil>
}
