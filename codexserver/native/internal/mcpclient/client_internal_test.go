package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/internal/mcpcall"
	"github.com/codexmcp/codexmcp/internal/slots"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// serve runs a server whose tools/list returns pages one after another, and returns the client's end of the connection.
func serve(t *testing.T, capabilities string, pages ...string) jsonrpc.Transport {
	t.Helper()
	ours, theirs := jsonrpc.Pipe()
	m := &jsonrpc.Mux{}
	m.HandleRaw("initialize", func(_ context.Context, params json.RawMessage) (any, error) {
		if !strings.Contains(string(params), `"elicitation":{}`) {
			return nil, fmt.Errorf("no elicitation in %s", params)
		}
		return json.RawMessage(`{"protocolVersion":"2025-06-18","serverInfo":{"name":"s","version":"1"},"capabilities":` + capabilities + `}`), nil
	})
	m.HandleRaw("tools/list", func(_ context.Context, params json.RawMessage) (any, error) {
		if pages == nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no tools")
		}
		var p struct {
			Cursor int `json:",string"`
		}
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		page := fmt.Sprintf(`{"tools":[%s]`, pages[p.Cursor%len(pages)])
		if p.Cursor+1 < len(pages) || len(pages) == 1 {
			page += fmt.Sprintf(`,"nextCursor":"%d"`, p.Cursor+1)
		}
		return json.RawMessage(page + "}"), nil
	})
	m.HandleRaw("tools/call", func(ctx context.Context, _ json.RawMessage) (any, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	peer := jsonrpc.NewPeer(theirs, m, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	var running sync.WaitGroup
	running.Go(func() { _ = peer.Run(context.Background()) })
	t.Cleanup(func() {
		_ = peer.Close()
		running.Wait()
	})
	return ours
}

func open(t *testing.T, transport jsonrpc.Transport, server config.MCPServer) *Client {
	t.Helper()
	c := must.Get(connect(t.Context(), transport, Options{Name: "toy", Server: server, Logger: slog.New(slog.DiscardHandler)}, mcpcall.Options{Protocol: mcptypes.ProtocolVersion}, text.Secrets{}))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestToolsOfAllPages(t *testing.T) {
	c := open(t, serve(t, `{"tools":{}}`,
		`{"name":"a","description":"does a","inputSchema":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}},{"name":7}`,
		`{"name":"b","inputSchema":{"properties":null}},{"name":""}`,
		`{"name":"c"}`,
		`{"name":"d","description":7,"inputSchema":{"type":"string"}},{"name":"e","inputSchema":"x"},{"name":"f","inputSchema":{"type":null,"properties":[]}}`), config.MCPServer{})
	want := []model.Tool{
		{Name: "a", Description: "does a", Parameters: []byte(`{"properties":{"x":{"type":"string"}},"required":["x"],"type":"object"}`), Foreign: true},
		{Name: "b", Parameters: []byte(`{"properties":{},"type":"object"}`), Foreign: true},
		{Name: "c", Parameters: []byte(`{"properties":{},"type":"object"}`), Foreign: true},
		{Name: "d", Parameters: []byte(`{"properties":{},"type":"object"}`), Foreign: true},
		{Name: "e", Parameters: []byte(`{"properties":{},"type":"object"}`), Foreign: true},
		{Name: "f", Parameters: []byte(`{"properties":{},"type":"object"}`), Foreign: true},
	}
	must.Equal(t, "result", want, c.Tools)
}

// TestBounds has lists of tools that end only by our limits.
func TestBounds(t *testing.T) {
	page := strings.TrimSuffix(strings.Repeat(`{"name":"x"},`, maxTools-1), ",")
	for _, tt := range []struct {
		capabilities string
		pages        []string
		want         int
	}{
		{`{"tools":{}}`, []string{`{"name":"again"}`}, maxPages}, // each page names another one
		{`{"tools":{}}`, []string{page, `{"name":"a"},{"name":"b"}`}, maxTools},
		{`{}`, []string{`{"name":"a"}`}, maxPages}, // which does not say so
		{`{}`, nil, 0},
	} {
		must.Equal(t, "tools", tt.want, len(open(t, serve(t, tt.capabilities, tt.pages...), config.MCPServer{}).Tools))
	}
}

// TestNear tells servers of this machine from others. A command has no URL.
func TestNear(t *testing.T) {
	for url, want := range map[string]bool{
		"http://localhost:1/x": true, "http://127.0.0.1/": true, "https://[::1]:8/": true,
		"": false, "https://example.com/localhost": false, "http://localhost.example.com": false, "http://10.0.0.1": false, "%": false,
	} {
		must.Equal(t, url, want, (&Client{options: Options{Server: config.MCPServer{URL: url}}}).Near())
	}
}

// TestOneQuestionAtATime has a server that asks many questions at once. They are asked one after
// the other, and too many are declined.
func TestOneQuestionAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open, asked, refused atomic.Int32
		c := &Client{asking: slots.NewQueue(maxWaiting), options: Options{Elicit: func(context.Context, json.RawMessage) (json.RawMessage, error) {
			must.Equal(t, "at once", int32(1), open.Add(1))
			asked.Add(1)
			time.Sleep(time.Second)
			open.Add(-1)
			return json.RawMessage(`{"action":"accept"}`), nil
		}}}
		var all sync.WaitGroup
		for range 1024 {
			all.Go(func() {
				if _, err := c.ask(t.Context(), nil); err != nil {
					refused.Add(1)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if asked.Load() != 1+maxWaiting || refused.Load() != 1024-asked.Load() {
			t.Errorf("%d asked, %d refused", asked.Load(), refused.Load())
		}
	})
}
