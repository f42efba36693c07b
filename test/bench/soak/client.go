package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// client is one connection to a server.
type client struct {
	peer *jsonrpc.Peer
	read *slow
	done chan struct{}
	// doomed means that the server will be killed. A command that has killed its
	// keeper before then is left.
	doomed bool

	mu            sync.Mutex
	conversations []string // the ids of the conversations that it began
}

// many is how many conversations a client begins.
const many = 150

func newClient(t jsonrpc.Transport, read *slow) *client {
	c := &client{read: read, done: make(chan struct{})}
	m := new(jsonrpc.Mux)
	jsonrpc.HandleNotify(m, "codex/event", c.event)
	jsonrpc.Handle(m, "elicitation/create", answer)
	c.peer = jsonrpc.NewPeer(t, m, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	go func() {
		defer close(c.done)
		_ = c.peer.Run(context.Background()) // lost answers are errors of the calls
	}()
	return c
}

func (c *client) hello(ctx context.Context) error {
	err := c.peer.Call(ctx, "initialize", map[string]any{"protocolVersion": "2025-06-18",
		"capabilities": map[string]any{"elicitation": map[string]any{}},
		"clientInfo":   map[string]any{"name": "soak", "version": "1"}}, nil)
	return errors.Join(err, c.peer.Notify(ctx, "notifications/initialized", nil))
}

// event records the conversations that begin.
func (c *client) event(_ context.Context, p struct {
	Msg struct {
		Type      string `json:"type"`
		SessionID string `json:"session_id"`
	} `json:"msg"`
}) error {
	if p.Msg.Type != "session_configured" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conversations = append(c.conversations, p.Msg.SessionID)
	return nil
}

// full reports whether the client has begun as many conversations as it may.
func (c *client) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conversations) >= many
}

// any returns one of the conversations.
func (c *client) any() (id string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.conversations) == 0 {
		return "", false
	}
	return c.conversations[rand.IntN(len(c.conversations))], true
}

// answer answers a question in a random way, or not at all.
func answer(ctx context.Context, _ json.RawMessage) (any, error) {
	switch rand.IntN(6) {
	case 0, 1:
		return map[string]any{"action": "accept", "content": map[string]any{}}, nil
	case 2:
		return map[string]any{"action": "decline"}, nil
	case 3:
		return map[string]any{"action": "cancel"}, nil
	case 4:
		return nil, errors.New("no answer")
	}
	select { // ignored
	case <-ctx.Done():
	case <-time.After(2 * question):
	}
	return nil, ctx.Err()
}

// call calls a method. It returns an error only if there was no answer; an error answer is an
// answer.
func (c *client) call(ctx context.Context, method string, params any) error {
	ctx, stop := context.WithTimeoutCause(ctx, patience, errUnanswered)
	defer stop()
	err := c.peer.Call(ctx, method, params, nil)
	var refused *jsonrpc.Error
	switch {
	case errors.As(err, &refused):
		return nil
	case err != nil && errors.Is(context.Cause(ctx), errUnanswered):
		return fmt.Errorf("%s %.200v: %w", method, params, errUnanswered)
	}
	return err
}

var errUnanswered = fmt.Errorf("no answer within %s", patience)

// tool calls a tool.
func (c *client) tool(ctx context.Context, name string, arguments map[string]any) error {
	return c.call(ctx, "tools/call", map[string]any{"name": name, "arguments": arguments})
}

// leave closes the connection without waiting for calls.
func (c *client) leave() {
	_ = c.peer.Close() // also the error of a server that was killed
	<-c.done
}
