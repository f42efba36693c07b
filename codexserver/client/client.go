package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/mcpcall"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/slots"
	"github.com/codexmcp/codexmcp/jsonrpc"
	jsonv2 "github.com/go-json-experiment/json"
)

// Options say where the server is, and who answers its questions. Exactly one of Command,
// Server, URL and Dial must be set.
type Options struct {
	// Command is the command that starts the server as a child. Each start uses a copy of
	// it. Its standard input and output must not be set.
	Command *exec.Cmd
	// Server is a server in this program, such as a *codexserver.Server. The caller closes
	// its engine.
	Server Server
	// URL is that of a server over HTTP, such as http://127.0.0.1:4517/mcp, and Token the
	// token for it. The scheme is https, or http for this machine.
	URL, Token string
	// Dial opens a connection in any other way. The client closes the transport. After an
	// error that is [ErrClosed] it does not try again.
	Dial func(context.Context) (jsonrpc.Transport, error)

	// Ask answers a question. Several goroutines may call it at a time. ctx ends when the
	// answer is not wanted any more, and Ask must return soon after: Close waits for it. Nil
	// means that no one can be asked.
	Ask func(ctx context.Context, q *Question) elicit.Outcome
	// AskRaw is Ask with the result of elicitation/create as JSON, for forms that are no
	// approvals. It is used instead of Ask.
	AskRaw func(ctx context.Context, q *Question) (json.RawMessage, error)

	// Name and Version are those that the server sees. Default: codexmcp-client, dev.
	Name, Version string
	// Protocol is the only version of MCP to use, such as 2025-06-18. Default: 2026-07-28
	// if the server has it, otherwise 2025-06-18.
	Protocol string
	// MaxMessage is the longest message of the server, in bytes. Default: 64 MiB.
	MaxMessage int
}

// Server is a server in the client's program.
type Server interface {
	// Serve serves one client until the transport or ctx ends.
	Serve(ctx context.Context, t jsonrpc.Transport) error
}

// Info is what the server says about itself; "" for what it does not say.
type Info struct {
	// Name and Version are those of the server.
	Name, Version string
	// Engine runs the turns, and Reason is why it was chosen.
	Engine, Reason string
}

// Client is a client of one server. It is safe for concurrent use.
type Client struct {
	o     Options
	dial  func(context.Context) (jsonrpc.Transport, error)
	life  context.Context
	leave context.CancelCauseFunc
	calls sync.WaitGroup // the methods that run

	connecting slots.Slots // one, to connect

	mu      sync.Mutex
	closed  bool
	session *mcpcall.Session // the last one; it may have ended
	ended   error            // of the last Close of a session
}

// ErrClosed is the error of a method after [Client.Close].
var ErrClosed = errors.New("client: closed")

const (
	// tries is how often a lost connection is opened again before a call fails.
	tries = 5
	// pause is the first delay between them; it doubles.
	pause = 100 * time.Millisecond
	// farewell is how long an interrupted turn may take to end.
	farewell = 5 * time.Second
	// events is the extension that makes the server send the events of a call.
	events = "io.github.codexmcp/events"
)

// Start connects to the server. The caller must close the client.
func Start(ctx context.Context, o *Options) (*Client, error) {
	c := &Client{connecting: make(slots.Slots, 1)}
	if o != nil {
		c.o = *o
	}
	var err error
	if c.dial, err = c.o.dialer(); err != nil {
		return nil, err
	}
	c.life, c.leave = context.WithCancelCause(context.Background())
	if c.session, err = c.connect(ctx); err != nil {
		c.leave(ErrClosed)
		return nil, fmt.Errorf("client: %w", err)
	}
	return c, nil
}

// Close ends the connection and waits until every method has returned, and a child has ended.
// A turn that is a task of a server with a life of its own continues, others are interrupted.
// Functions of the client's options and tasks must not call Close. The error is that of a child
// that failed, not of one that it had to end.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.leave(errLeave())
	err := c.hangUp() // also ends calls that wait for the end of their turns
	c.calls.Wait()
	err = errors.Join(err, c.hangUp()) // a call may have been connecting
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = cmp.Or(c.ended, err)
	return c.ended
}

// hangUp closes the last session.
func (c *Client) hangUp() error {
	c.mu.Lock()
	s := c.session
	c.session = nil
	c.mu.Unlock()
	if s == nil {
		return nil
	}
	lived := !s.Over()
	err := s.Close()
	if lived && killed(err) {
		return nil
	}
	return err
}

// killed reports whether err is that of a child that a signal ended, such as those with which the
// transport ends one that ignores the end of its input.
func killed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && slices.Contains([]string{"signal: terminated", "signal: killed"}, exit.String())
}

// errLeave returns the cause of the end of calls that Close ends.
func errLeave() error { return fmt.Errorf("%w: %w", ErrClosed, mcpcall.ErrLeave) }

// Info returns what the server says about itself.
func (c *Client) Info() Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil {
		return Info{}
	}
	s := c.session.Server()
	said := s.Extra["engine"]
	if c.session.Modern() {
		said = json.RawMessage(c.session.Meta("io.github.codexmcp/engine"))
	}
	var e struct {
		Name   string `json:"name"`
		Reason string `json:"reason"`
	}
	_ = jsonv2.Unmarshal(said, &e) // after an error there is no engine
	return Info{s.Name, s.Version, e.Name, e.Reason}
}

// enter begins a method. Its context ends when the client is closed.
func (c *Client) enter(ctx context.Context) (context.Context, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, ErrClosed
	}
	c.calls.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.life, func() { cancel(errLeave()) })
	return ctx, func() {
		stop()
		cancel(nil)
		c.calls.Done()
	}, nil
}

// connected returns a session that has not ended, if need be a new one.
func (c *Client) connected(ctx context.Context) (*mcpcall.Session, error) {
	leave, err := c.connecting.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	c.mu.Lock()
	last := c.session
	c.mu.Unlock()
	switch {
	case last == nil:
		return nil, ErrClosed
	case !last.Over():
		return last, nil
	}
	_ = last.Close() // its calls have reported the end
	for n, wait := 1, pause; ; n, wait = n+1, 2*wait {
		s, err := c.connect(ctx)
		if err == nil {
			c.mu.Lock()
			c.session = s
			c.mu.Unlock()
			return s, nil
		}
		if n == tries || ctx.Err() != nil || errors.Is(err, ErrClosed) {
			return nil, fmt.Errorf("client: connecting again: %w", err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (c *Client) connect(ctx context.Context) (*mcpcall.Session, error) {
	t, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	o := &mcpcall.Options{
		Name: cmp.Or(c.o.Name, "codexmcp-client"), Version: cmp.Or(c.o.Version, "dev"), Protocol: c.o.Protocol,
		Ask: c.asker(), CallOf: callOf, Extensions: []string{events}, MaxMessage: c.o.MaxMessage,
		Again: func(err error) bool { unknown, _ := mcphttp.Unanswered(err); return unknown },
	}
	if c.o.URL == "" { // over HTTP a cancelled request has no further events
		o.Farewell = farewell
	}
	return mcpcall.Connect(ctx, t, o)
}

// lost reports whether err means that the answer to a request was lost, and whether the server
// may have received the request.
func lost(err error) (unknown, sent bool) {
	if errors.Is(err, jsonrpc.ErrClosed) {
		return true, !errors.Is(err, mcpcall.ErrUnsent)
	}
	return mcphttp.Unanswered(err)
}

// dialer returns the function that opens a connection to the server.
func (o *Options) dialer() (func(context.Context) (jsonrpc.Transport, error), error) {
	var ways []func(context.Context) (jsonrpc.Transport, error)
	if o.Command != nil {
		ways = append(ways, o.child)
	}
	if o.Server != nil {
		ways = append(ways, func(context.Context) (jsonrpc.Transport, error) {
			return mcpcall.Join(o.Server.Serve),
				nil
		})
	}
	if o.URL != "" {
		ways = append(ways, func(context.Context) (jsonrpc.Transport, error) {
			return mcphttp.NewClient(&mcphttp.ClientOptions{URL: o.URL, Token: o.Token})
		})
	}
	if o.Dial != nil {
		ways = append(ways, o.Dial)
	}
	if len(ways) != 1 {
		return nil, errors.New("client: set one of Options.Command, Server, URL and Dial")
	}
	return ways[0], nil
}

// child starts a copy of the command.
func (o *Options) child(context.Context) (jsonrpc.Transport, error) {
	c := o.Command
	return jsonrpc.Command(&exec.Cmd{
		Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
		ExtraFiles: c.ExtraFiles, SysProcAttr: c.SysProcAttr, Err: c.Err,
	}, 0)
}
