// Command gosdkclient is the client of the official Go SDK, driven by JSON-RPC, a message a line,
// as typescript/client.mjs is: it connects, calls, and hands questions on. It is for tests of
// other modules, which do not need the SDK otherwise.
//
//	gosdkclient '{"url":"https://localhost/mcp","token":"…"}'
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// client is a client with at most one session.
type client struct {
	URL   string `json:"url"`
	Token string `json:"token"`

	peer *jsonrpc.Peer

	mu      sync.Mutex
	session *mcp.ClientSession
}

// RoundTrip implements [http.RoundTripper]: it adds the token.
func (c *client) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+c.Token)
	return http.DefaultTransport.RoundTrip(r)
}

func run() error {
	if len(os.Args) != 2 {
		return errors.New("usage: gosdkclient SETUP")
	}
	c := &client{}
	if err := json.Unmarshal([]byte(os.Args[1]), c); err != nil {
		return err
	}
	mux := &jsonrpc.Mux{}
	jsonrpc.Handle(mux, "connect", c.connect)
	jsonrpc.Handle(mux, "call", c.call)
	c.peer = jsonrpc.NewPeer(jsonrpc.Lines(os.Stdin, os.Stdout, os.Stdin), mux, nil)
	err := c.peer.Run(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != nil {
		_ = c.session.Close() // the server may be gone
	}
	return err
}

// connect begins a session, in place of the last one.
func (c *client) connect(ctx context.Context, _ struct{}) (struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != nil {
		_ = c.session.Close() // the server may not know it any more
		c.session = nil
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "interop-gosdk", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(ctx context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			var action string
			err := c.peer.Call(ctx, "ask", map[string]string{"message": q.Params.Message}, &action)
			return &mcp.ElicitResult{Action: action, Content: map[string]any{}}, err
		},
	})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: c.URL, HTTPClient: &http.Client{Transport: c}}, nil)
	c.session = session
	return struct{}{}, err
}

type toolCall struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

func (c *client) call(ctx context.Context, params toolCall) (*mcp.CallToolResult, error) {
	c.mu.Lock()
	session := c.session
	c.mu.Unlock()
	if session == nil {
		return nil, errors.New("there is no session")
	}
	return session.CallTool(ctx, &mcp.CallToolParams{Name: params.Tool, Arguments: params.Arguments})
}
