// Package mcpclient runs the MCP servers that the user configured, so that a model can
// call their tools.
package mcpclient

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	defaultStartup = 10 * time.Second
	defaultTool    = time.Minute
	// closeGrace is how long Close waits for a server to exit, first by itself and
	// again after a signal.
	closeGrace = 200 * time.Millisecond
	// maxPages and maxTools bound what a server offers.
	maxPages = 100
	maxTools = 1000
)

// Options describe a server and how it runs.
type Options struct {
	// Name is the server's name in the configuration.
	Name   string
	Server config.MCPServer
	// Environ is the engine's environment. The server gets only the core of it.
	Environ []string
	// Dir is the folder in which the server runs.
	Dir string
	// Programs finds the server's program. By default no folders count as writable by
	// commands, except those for temporary files.
	Programs *sandbox.Programs
	// Processes starts the server, and ends all that it started.
	Processes *proc.Pool
	// Version is the engine's version.
	Version string
	// Elicit asks the user a question of the server. Params and result are those
	// of MCP's elicitation/create. Nil declines every question.
	Elicit func(ctx context.Context, params stdjson.RawMessage) (stdjson.RawMessage, error)
	Logger *slog.Logger
}

// Client is a connection to one server. It is safe for concurrent use.
type Client struct {
	options Options
	peer    *jsonrpc.Peer
	end     context.CancelFunc
	running sync.WaitGroup
	tools   []Tool
}

// Tool is a tool as its server describes it.
type Tool struct {
	Name        string
	Description string
	// Schema is the schema of the arguments: an object with type and properties.
	Schema stdjson.RawMessage
}

// Start starts a server and requests its tools. The server runs until Close, even after
// ctx has ended.
func Start(ctx context.Context, o Options) (*Client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, seconds(o.Server.StartupTimeoutSec, defaultStartup), errors.New("it did not start in time"))
	defer cancel()
	if o.Server.Command == "" {
		return nil, errors.New("it has no command")
	}
	programs := o.Programs
	if programs == nil {
		programs = &sandbox.Programs{}
	}
	env, path := programs.Environ(proc.EnvPolicy{Inherit: proc.InheritCore, IgnoreDefaultExcludes: true, Set: o.Server.Env}.Environ(o.Environ))
	name, err := programs.Find(o.Server.Command, o.Dir, path)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(name, o.Server.Args...)
	cmd.Args[0] = o.Server.Command
	cmd.Dir, cmd.Env = o.Dir, env
	var conn *proc.Conn
	err = programs.Start(cmd, func() (err error) {
		conn, err = o.Processes.Connect(ctx, cmd, proc.Talk{Leave: closeGrace, Ask: closeGrace})
		return err
	})
	if err != nil {
		return nil, err
	}
	return connect(ctx, jsonrpc.Lines(conn.Out, conn.In, conn), o)
}

// connect begins a session with a server over transport, which the client then owns.
func connect(ctx context.Context, transport jsonrpc.Transport, o Options) (*Client, error) {
	c := &Client{options: o}
	c.peer = jsonrpc.NewPeer(transport, c.mux(), &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel, DrainTimeout: closeGrace})
	life, end := context.WithCancel(context.Background())
	c.end = end
	c.running.Go(func() {
		if err := c.peer.Run(life); err != nil && life.Err() == nil {
			o.Logger.Warn("MCP server ended", "server", o.Name, "error", err)
		}
	})
	if err := c.greet(ctx); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func seconds(s float64, otherwise time.Duration) time.Duration {
	if s <= 0 {
		return otherwise
	}
	return time.Duration(min(s, 1e6) * float64(time.Second))
}

// mux handles the requests of the server.
func (c *Client) mux() *jsonrpc.Mux {
	m := &jsonrpc.Mux{}
	m.HandleRaw("ping", func(context.Context, stdjson.RawMessage) (any, error) { return struct{}{}, nil })
	m.HandleRaw("elicitation/create", func(ctx context.Context, params stdjson.RawMessage) (any, error) {
		if c.options.Elicit == nil {
			return map[string]string{"action": "decline"}, nil
		}
		named, err := c.sign(params)
		if err != nil {
			return nil, err
		}
		return c.options.Elicit(ctx, named)
	})
	return m
}

// sign puts the server's name at the beginning of its question, so that a server cannot
// pose as Codex.
func (c *Client) sign(params stdjson.RawMessage) (stdjson.RawMessage, error) {
	var members map[string]jsontext.Value
	var message string
	err := json.Unmarshal(params, &members)
	if err == nil {
		err = json.Unmarshal(members["message"], &message)
	}
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("message: %v", err)}
	}
	quoted, err := jsontext.AppendQuote(nil, fmt.Sprintf("The MCP server %q asks: %s", c.options.Name, message))
	if err != nil {
		return nil, err
	}
	members["message"] = quoted
	return json.Marshal(members, json.Deterministic(true))
}

// greet initializes the session and reads the tools.
func (c *Client) greet(ctx context.Context) error {
	title := "Codex"
	var hello struct {
		Capabilities map[string]jsontext.Value `json:"capabilities"`
	}
	err := c.peer.Call(ctx, "initialize", &mcptypes.InitializeRequestParams{
		ProtocolVersion: mcptypes.ProtocolVersion,
		Capabilities:    mcptypes.ClientCapabilities{Elicitation: map[string]stdjson.RawMessage{}},
		ClientInfo:      mcptypes.Implementation{Name: "codex-mcp", Title: &title, Version: c.options.Version},
	}, &hello)
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if err := c.peer.Notify(ctx, "notifications/initialized", nil); err != nil {
		return err
	}
	if _, ok := hello.Capabilities["tools"]; !ok {
		return nil
	}
	return c.list(ctx)
}

func (c *Client) list(ctx context.Context) error {
	params := &mcptypes.ListToolsRequestParams{}
	for range maxPages {
		var page struct {
			Tools      []jsontext.Value `json:"tools"`
			NextCursor *string          `json:"nextCursor"`
		}
		if err := c.peer.Call(ctx, "tools/list", params, &page); err != nil {
			return fmt.Errorf("tools/list: %w", err)
		}
		for _, raw := range page.Tools {
			t, err := readTool(raw)
			if err != nil {
				c.options.Logger.Warn("tool of an MCP server is left out", "server", c.options.Name, "error", err)
				continue
			}
			if c.tools = append(c.tools, t); len(c.tools) >= maxTools {
				return nil
			}
		}
		if page.NextCursor == nil {
			return nil
		}
		params.Cursor = page.NextCursor
	}
	return nil
}

// readTool reads one tool of a list. It adds the members of the schema that providers
// require.
func readTool(raw jsontext.Value) (Tool, error) {
	var t struct {
		Name        string                    `json:"name"`
		Description string                    `json:"description"`
		InputSchema map[string]jsontext.Value `json:"inputSchema"`
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return Tool{}, err
	}
	if t.Name == "" {
		return Tool{}, errors.New("name is empty")
	}
	if t.InputSchema == nil {
		t.InputSchema = map[string]jsontext.Value{}
	}
	for name, value := range map[string]string{"type": `"object"`, "properties": `{}`} {
		if v, ok := t.InputSchema[name]; !ok || v.Kind() == 'n' {
			t.InputSchema[name] = jsontext.Value(value)
		}
	}
	schema, err := json.Marshal(t.InputSchema, json.Deterministic(true))
	return Tool{Name: t.Name, Description: t.Description, Schema: schema}, err
}

// Tools returns the server's tools.
func (c *Client) Tools() []Tool { return c.tools }

// Call calls a tool and returns the server's result unchanged.
func (c *Client) Call(ctx context.Context, tool string, arguments stdjson.RawMessage) (stdjson.RawMessage, error) {
	timeout := seconds(c.options.Server.ToolTimeoutSec, defaultTool)
	limited, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	var result stdjson.RawMessage
	err := c.peer.Call(limited, "tools/call", &mcptypes.CallToolRequestParams{Name: tool, Arguments: arguments}, &result)
	if err != nil && limited.Err() != nil {
		err = context.Cause(limited)
	}
	return result, err
}

// Close ends the server and waits until it is gone.
func (c *Client) Close() error {
	err := c.peer.Close()
	c.end()
	c.running.Wait()
	return err
}
