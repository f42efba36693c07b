// Package mcpclient connects to the MCP servers that the user configured, programs and servers
// over HTTP, so that a model can call their tools.
package mcpclient

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/internal/mcpcall"
	"github.com/codexmcp/codexmcp/internal/slots"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/codexmcp/codexmcp/internal/webaddr"
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

// Options describe a server, and how it runs or is reached.
type Options struct {
	// Name is the server's name in the configuration.
	Name   string
	Server config.MCPServer
	// Environ is the conversation's environment. The server gets the core of it, what [Usual] names, and what its
	// configuration names.
	Environ []string
	// Dir is the folder in which the server runs.
	Dir string
	// Programs finds the server's program.
	Programs *box.Programs
	// Processes starts the server, and ends all that it started.
	Processes *run.Starter
	// HTTP sends the requests to a server with a URL. It must not follow redirects or add
	// secrets.
	HTTP http.RoundTripper
	// Getenv returns the environment variables with the token and the headers for it.
	Getenv func(name string) string
	// Version is the engine's version.
	Version string
	// Elicit asks the user a question of the server. Params are those of MCP's
	// elicitation/create, as the server sent them, and so is the result. It is called for one
	// question at a time. Nil declines every question.
	Elicit func(ctx context.Context, params stdjson.RawMessage) (stdjson.RawMessage, error)
	Logger *slog.Logger
}

// Client is a connection to one server. It is safe for concurrent use, but for Tools and Refresh.
type Client struct {
	// Tools are the server's tools as [Start] or the last [Client.Refresh] found them. Their parameters are those of an
	// object with type and properties.
	Tools []model.Tool

	changed atomic.Bool // the server has said so of its tools
	options Options
	session *mcpcall.Session
	secrets text.Secrets // of the server's requests
	asking  *slots.Queue
}

// Start starts a server, or connects to it, and requests its tools. The server runs until
// Close, even after ctx has ended.
func Start(ctx context.Context, o Options) (*Client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, seconds(o.Server.StartupTimeoutSec, defaultStartup),
		errors.New("it did not start in time"))
	defer cancel()
	switch {
	case o.Server.Command != "" && o.Server.URL != "":
		return nil, errors.New("it has both a command and a url")
	case o.Server.URL != "":
		return dial(ctx, o)
	case o.Server.Command == "":
		return nil, errors.New("it has neither a command nor a url")
	}
	name, env, err := Find(&o)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(name, o.Server.Args...)
	cmd.Args[0] = o.Server.Command
	cmd.Dir, cmd.Env = o.Dir, env
	var conn *run.Conn
	err = o.Programs.Start(cmd, func() (err error) {
		conn, err = o.Processes.Connect(ctx, cmd, run.Talk{Leave: closeGrace, Ask: closeGrace})
		return err
	})
	if err != nil {
		return nil, err
	}
	c, err := connect(ctx, jsonrpc.Lines(conn.Out, conn.In, conn), o,
		mcpcall.Options{Protocol: mcptypes.ProtocolVersion}, text.Secrets{})
	if errors.Is(err, jsonrpc.ErrClosed) { // whether by reading or by writing
		err = fmt.Errorf("it ended before it answered: %w", cmp.Or(conn.Close(), errors.New("exit status 0")))
	}
	return c, err
}

// Usual returns the variables that each server gets besides the core: its language, terminal and time zone, and the
// authorities that it trusts. Codex 0.171 passes the same.
func Usual() []string {
	return []string{"LANG", "LC_ALL", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "TERM", "TZ", "__CF_USER_TEXT_ENCODING"}
}

// Find returns the program of a server, and the environment that it gets.
func Find(o *Options) (program string, env []string, err error) {
	named := Usual()
	for i, v := range o.Server.EnvVars {
		if v.Source == "remote" {
			return "", nil, fmt.Errorf("env_vars.%d: %s is on another machine, the server on this one", i, v.Name)
		}
		named = append(named, v.Name)
	}
	policy := run.EnvPolicy{Inherit: run.InheritCore, IgnoreDefaultExcludes: true, Named: named, Set: o.Server.Env}
	env, path := o.Programs.Environ(policy.Environ(o.Environ))
	program, err = o.Programs.Find(o.Server.Command, o.Dir, path)
	return program, env, err
}

// connect begins a session with a server over transport, which the client then owns.
func connect(
	ctx context.Context, transport jsonrpc.Transport, o Options, session mcpcall.Options, secrets text.Secrets,
) (*Client, error) {
	c := &Client{options: o, secrets: secrets, asking: slots.NewQueue(maxWaiting)}
	session.Name, session.Version, session.Ask, session.Hide = "codex-mcp", o.Version, c.ask, secrets.Hide
	session.ToolsChanged = func() { c.changed.Store(true) }
	var err error
	if c.session, err = mcpcall.Connect(ctx, transport, &session); err == nil {
		if c.Tools, err = c.list(ctx); err != nil {
			err = errors.Join(err, c.Close())
		}
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, c.hidden(err)
	}
	return c, nil
}

// hidden returns an error of a server without the secrets of its requests.
func (c *Client) hidden(err error) error {
	if err == nil {
		return nil
	}
	if said := c.secrets.Hide(err.Error()); said != err.Error() {
		return errors.New(said)
	}
	return err
}

func seconds(s float64, otherwise time.Duration) time.Duration {
	if s <= 0 {
		return otherwise
	}
	return time.Duration(min(s, 1e6) * float64(time.Second))
}

// maxWaiting is how many questions of the server may wait for the one that is asked.
const maxWaiting = 32

// ask asks the user a question of the server, one at a time.
func (c *Client) ask(ctx context.Context, params stdjson.RawMessage) (stdjson.RawMessage, error) {
	if c.options.Elicit == nil {
		return stdjson.RawMessage(`{"action":"decline"}`), nil
	}
	leave, err := c.asking.Take(ctx)
	if errors.Is(err, slots.ErrFull) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeOverloaded, "%d questions wait already", maxWaiting)
	}
	if err != nil {
		return nil, err
	}
	defer leave()
	return c.options.Elicit(ctx, params)
}

// Refresh requests the tools again if the server has said that they changed, and reports whether it has them. After an
// error the tools are as before, until the server says so again.
func (c *Client) Refresh(ctx context.Context) (bool, error) {
	if !c.changed.Swap(false) || c.Ended() {
		return false, nil
	}
	timeout := seconds(c.options.Server.StartupTimeoutSec, defaultStartup)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	tools, err := c.list(ctx)
	if err != nil {
		return false, c.hidden(err)
	}
	c.Tools = tools
	return true, nil
}

// list reads the tools, also of a server that does not declare them.
func (c *Client) list(ctx context.Context) (tools []model.Tool, err error) {
	params := map[string]any{}
	for range maxPages {
		var page struct {
			Tools      []jsontext.Value `json:"tools"`
			NextCursor *string          `json:"nextCursor"`
		}
		err := c.session.Request(ctx, mcptypes.ToolsList.Name(), params, &page)
		if said, ok := errors.AsType[*jsonrpc.Error](err); ok && said.Code == jsonrpc.CodeMethodNotFound {
			return nil, nil // it has none
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", mcptypes.ToolsList.Name(), err)
		}
		for _, raw := range page.Tools {
			t, err := readTool(raw)
			if err != nil {
				c.options.Logger.Warn("tool of an MCP server is left out", "server", c.options.Name, "error", err)
				continue
			}
			if tools = append(tools, t); len(tools) >= maxTools {
				return tools, nil
			}
		}
		if page.NextCursor == nil {
			return tools, nil
		}
		params["cursor"] = *page.NextCursor
	}
	return tools, nil
}

// readTool reads one tool of a list. It adds the members of the schema that providers require. A schema that
// is none of an object says nothing about arguments.
func readTool(raw jsontext.Value) (model.Tool, error) {
	var t struct {
		Name        string         `json:"name"`
		Description jsontext.Value `json:"description"`
		InputSchema jsontext.Value `json:"inputSchema"`
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return model.Tool{}, err
	}
	if t.Name == "" {
		return model.Tool{}, errors.New("name is empty")
	}
	var description string
	_ = json.Unmarshal(t.Description, &description) // another type is none
	var members map[string]jsontext.Value
	err := json.Unmarshal(t.InputSchema, &members)
	if kind := string(members["type"]); err != nil || members == nil || kind != "" && kind != "null" &&
		kind != `"object"` {
		members = map[string]jsontext.Value{}
	}
	members["type"] = jsontext.Value(`"object"`)
	if members["properties"].Kind() != '{' {
		members["properties"] = jsontext.Value(`{}`)
	}
	schema, err := json.Marshal(members, json.Deterministic(true))
	return model.Tool{Name: t.Name, Description: description, Parameters: schema, Foreign: true}, err
}

// Call calls a tool and returns the server's result unchanged.
func (c *Client) Call(ctx context.Context, tool string, arguments stdjson.RawMessage) (stdjson.RawMessage, error) {
	timeout := seconds(c.options.Server.ToolTimeoutSec, defaultTool)
	limited, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	result, err := c.session.Call(limited, &mcpcall.Call{Tool: tool, Arguments: arguments, Tasks: true})
	if err != nil && limited.Err() != nil {
		return nil, context.Cause(limited)
	}
	return result, c.hidden(err)
}

// Close ends the server, or the connection to it, and waits until it is gone.
func (c *Client) Close() error { return c.session.Close() }

// Ended reports whether the server has ended, or the connection to it.
func (c *Client) Ended() bool { return c.session.Ended() }

// Server returns the name that the server gives itself; "" if it gives none.
func (c *Client) Server() string { return c.session.Server().Name }

// maxInstructions bounds what the model reads of a server's instructions, in bytes.
const maxInstructions = 16 << 10

// Instructions returns what the server says to the model about its use; "" if it says nothing.
func (c *Client) Instructions() string {
	said := strings.TrimSpace(strings.ToValidUTF8(c.secrets.Hide(c.session.Instructions()), "\uFFFD"))
	if len(said) <= maxInstructions {
		return said
	}
	return strings.ToValidUTF8(said[:maxInstructions], "") + fmt.Sprintf(" [cut: %d bytes in all]", len(said))
}

// Near reports whether the server has a URL on this machine.
func (c *Client) Near() bool {
	u, err := url.Parse(c.options.Server.URL)
	return err == nil && webaddr.Loopback(u.Hostname())
}
