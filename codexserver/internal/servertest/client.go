package servertest

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

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// Server is what a client connects to, such as a *codexserver.Server.
type Server interface {
	Serve(ctx context.Context, t jsonrpc.Transport) error
}

// Client is a client in the test's own program. It records what the server sends.
type Client struct {
	peer   *jsonrpc.Peer
	answer Answer
	ended  func() error // closes the client once, and waits for the server

	decisions record[string] // the last one counts
	received  record[Message]
	heard     int // how many messages Heard has returned
}

// Message is a notification or a request of the server.
type Message struct {
	Method string
	Params json.RawMessage
}

// Dial connects a client that sends no initialize. It answers questions with a; with nil it
// has no method for them. The end of the test closes the client, and fails if the client or
// the server ends with an error.
func Dial(t testing.TB, s Server, a Answer) *Client {
	t.Helper()
	c := &Client{answer: a}
	c.Decide(`{"decision":"approved"}`)
	ours, theirs := jsonrpc.Pipe()
	c.peer = jsonrpc.NewPeer(ours, c, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	running, served := make(chan error, 1), make(chan error, 1)
	go func() { running <- c.peer.Run(context.Background()) }()
	go func() { served <- s.Serve(context.Background(), theirs) }()
	c.ended = sync.OnceValue(func() error {
		c.Close()
		return errors.Join(<-running, <-served)
	})
	t.Cleanup(func() {
		if err := c.ended(); err != nil {
			t.Errorf("client and server: %v", err)
		}
	})
	return c
}

// End ends the client's input and waits for the end of the session.
func (c *Client) End() { _ = c.ended() } // the end of the test reports the error

// Connect is [Dial] and sends initialize. With a nil answer the client has no elicitation.
func Connect(t testing.TB, s Server, a Answer) *Client {
	t.Helper()
	c := Dial(t, s, a)
	if err := c.initialize(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *Client) initialize(ctx context.Context) error {
	var capabilities mcptypes.ClientCapabilities
	if c.answer != nil {
		capabilities.Elicitation = map[string]json.RawMessage{}
	}
	_, err := mcptypes.Initialize.Call(ctx, c, &mcptypes.InitializeRequestParams{
		ProtocolVersion: mcptypes.ProtocolVersion,
		Capabilities:    capabilities,
		ClientInfo:      mcptypes.Implementation{Name: "test", Version: "1"},
	})
	return err
}

// Call sends a request and waits for its answer.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	return c.peer.Call(ctx, method, params, result)
}

// Start sends a request, whose answer the test reads later.
func (c *Client) Start(ctx context.Context, method string, params any) *jsonrpc.Call {
	return c.peer.Start(ctx, method, params)
}

// Notify sends a notification.
func (c *Client) Notify(ctx context.Context, method string, params any) error {
	return c.peer.Notify(ctx, method, params)
}

// Close ends the client's input. Unlike [Client.End] it waits for nothing.
func (c *Client) Close() { c.peer.Close() }

// Decide sets the answer to approval requests of September 2025.
func (c *Client) Decide(result string) { c.decisions.add(result) }

// ServeRPC implements [jsonrpc.Handler].
func (c *Client) ServeRPC(ctx context.Context, r *jsonrpc.Request) (any, error) {
	c.received.add(Message{r.Method, slices.Clone(r.Params)})
	switch {
	case r.IsNotification():
		return nil, nil
	case strings.HasSuffix(r.Method, "Approval"):
		all := c.decisions.list()
		return json.RawMessage(all[len(all)-1]), nil
	case r.Method == mcptypes.ElicitationCreate.Name() && c.answer != nil:
		result, err := c.answer(ctx)
		if err != nil {
			return nil, err
		}
		return json.RawMessage(result), nil
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no method %s", r.Method)
}

// Result is the part of a tool's result that most tests check.
type Result struct {
	Texts   []string // those for everybody
	Content string
	Thread  string
	IsError bool
}

// Tool calls a tool and returns its result.
func (c *Client) Tool(ctx context.Context, name string, arguments map[string]any) (Result, error) {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return Result{}, err
	}
	res, err := mcptypes.ToolsCall.Call(ctx, c, &mcptypes.CallToolRequestParams{Name: name, Arguments: raw})
	if err != nil {
		return Result{}, err
	}
	var structured struct{ ThreadID, Content string }
	if err := json.Unmarshal(res.StructuredContent, &structured); err != nil {
		return Result{}, err
	}
	r := Result{Content: structured.Content, Thread: structured.ThreadID, IsError: res.IsError != nil && *res.IsError}
	for _, block := range res.Content {
		if text := block.(*mcptypes.TextContent); text.Annotations == nil {
			r.Texts = append(r.Texts, text.Text)
		}
	}
	return r, nil
}

// Ask sends a request and returns its result or its error as text.
func (c *Client) Ask(t testing.TB, method, params string) string {
	t.Helper()
	return c.ask(t.Context(), method, params)
}

// CallTool is [Client.Ask] for a tool. The arguments are JSON.
func (c *Client) CallTool(t testing.TB, name, arguments string) string {
	t.Helper()
	return c.Ask(t, mcptypes.ToolsCall.Name(), fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))
}

// NewConversation begins a conversation by the method of September 2025.
func (c *Client) NewConversation(t testing.TB) (id string) {
	t.Helper()
	var result protocol.NewConversationResult
	if err := c.Call(t.Context(), "newConversation", json.RawMessage(`{}`), &result); err != nil {
		t.Fatal(err)
	}
	return result.ConversationID
}

// Received returns the params of the messages of a method.
func (c *Client) Received(method string) []json.RawMessage {
	var all []json.RawMessage
	for _, m := range c.received.list() {
		if m.Method == method {
			all = append(all, m.Params)
		}
	}
	return all
}

// Events returns the types of the events of calls.
func (c *Client) Events() []string {
	var types []string
	for _, params := range c.Received("codex/event") {
		var p struct{ Msg struct{ Type string } }
		_ = json.Unmarshal(params, &p) // "" shows in the test
		types = append(types, p.Msg.Type)
	}
	return types
}

// Heard waits until the test's synctest bubble is idle, and returns what was received since
// its last call, by the same goroutine: the method, the id and the message of an event.
func (c *Client) Heard() []string {
	synctest.Wait()
	all := c.received.list()
	var lines []string
	for _, m := range all[c.heard:] {
		var p struct {
			ID  string
			Msg struct{ Message string }
		}
		_ = json.Unmarshal(m.Params, &p) // not every message has these members
		lines = append(lines, strings.Join(strings.Fields(m.Method+" "+p.ID+" "+p.Msg.Message), " "))
	}
	c.heard = len(all)
	return lines
}

// Meta is the _meta of a request of 2026-07-28, whose client cannot answer questions.
var Meta = Capable("")

// Capable is [Meta] of a client with these members of its capabilities.
func Capable(capabilities string) string {
	return `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{` + capabilities + `}}`
}

// ThreadOf returns the thread's id in a tool's result.
func ThreadOf(t testing.TB, result string) string {
	t.Helper()
	var r struct {
		StructuredContent struct{ ThreadID string }
	}
	if err := json.Unmarshal([]byte(result), &r); err != nil || r.StructuredContent.ThreadID == "" {
		t.Fatalf("no threadId in %s (%v)", result, err)
	}
	return r.StructuredContent.ThreadID
}
