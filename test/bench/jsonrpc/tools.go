package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/creachadair/jrpc2/handler"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"
	sourcegraph "github.com/sourcegraph/jsonrpc2"
	lspdev "go.lsp.dev/jsonrpc2"
	xexp "golang.org/x/exp/jsonrpc2"
)

// toolNames are the tools of the cases, see jsonrpc/testdata.
var toolNames = []string{"echo", "len", "slow", "wait", "wait1", "ask", "count", "tick200", "tick20000", "panic",
	"fail", "big"}

// session is the client of a server of the cases.
type session struct {
	ask    func(ctx context.Context, q question) (decision, error)
	notify func(ctx context.Context, p progress) error
}

// codeError is an error with its code in JSON-RPC.
type codeError struct {
	code int
	msg  string
}

func (e *codeError) Error() string { return e.msg }

// coded returns an error of the tools as the package under test has those with a code, and others as they are.
func coded(err error, as func(code int, msg string) error) error {
	if e, ok := errors.AsType[*codeError](err); ok {
		return as(e.code, e.msg)
	}
	return err
}

// tools are the tools of one server.
type tools struct {
	mu       sync.Mutex
	count    int
	last     float64
	disorder string
}

// progress counts a notification.
func (t *tools) progress(p progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.Progress < t.last {
		t.disorder = "ooo"
	}
	t.count, t.last = t.count+1, p.Progress
}

// handle answers a request, or takes a notification, of a package that only knows JSON-RPC.
func (t *tools) handle(ctx context.Context, s session, method string, params []byte) (any, error) {
	if len(params) == 0 {
		params = []byte("{}")
	}
	switch method {
	case "initialize", "ping":
		return struct{}{}, nil
	case "notifications/progress":
		var p progress
		if json.Unmarshal(params, &p) == nil {
			t.progress(p)
		}
		return nil, nil
	case "tools/call":
	default:
		return nil, &codeError{-32601, "no method " + method}
	}
	var p struct {
		Name      *string   `json:"name"`
		Arguments arguments `json:"arguments"`
	}
	if err := json.Unmarshal(params, &p); err != nil || p.Name == nil {
		return nil, &codeError{-32602, fmt.Sprintf("name is missing, %v", err)}
	}
	text, err := t.call(ctx, s, *p.Name, p.Arguments.Text)
	if err != nil {
		return nil, err
	}
	return result(text), nil
}

// call calls a tool.
func (t *tools) call(ctx context.Context, s session, name, text string) (string, error) {
	wait := func(d time.Duration) (string, error) {
		select {
		case <-ctx.Done():
			return "cancelled", nil
		case <-time.After(d):
			return "timeout", nil
		}
	}
	ticks := map[string]int{"tick200": 200, "tick20000": 20_000}[name]
	for i := range ticks {
		if err := s.notify(ctx, progress{Token: "p", Progress: float64(i + 1)}); err != nil {
			return "", err
		}
	}
	switch name {
	case "echo":
		return text, nil
	case "len":
		return fmt.Sprint(len(text)), nil
	case "slow":
		<-time.After(400 * time.Millisecond)
		return "slow", nil
	case "wait":
		return wait(3 * time.Second)
	case "wait1":
		return wait(time.Second)
	case "ask":
		d, err := s.ask(ctx, question{text})
		return d.Action, err
	case "count":
		t.mu.Lock()
		defer t.mu.Unlock()
		return fmt.Sprint(t.count, t.disorder), nil
	case "tick200", "tick20000":
		return "done", nil
	case "panic":
		panic("tool panicked")
	case "fail":
		return "", errors.New("tool failed")
	case "big":
		return strings.Repeat("x", 1<<20), nil
	}
	return "", &codeError{-32602, "no tool " + name}
}

func oursTools(s *stream) {
	t := new(tools)
	h := jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		var strict any // Bind refuses what encoding/json takes
		if err := r.Bind(&strict); err != nil && len(r.Params) > 0 {
			return nil, err
		}
		p := r.Peer()
		v, err := t.handle(ctx, session{
			func(ctx context.Context, q question) (d decision, err error) {
				return d, p.Call(ctx, "elicitation/create", q, &d)
			},
			func(ctx context.Context, n progress) error { return p.Notify(ctx, "notifications/progress", n) },
		}, r.Method, r.Params)
		return v, coded(err, func(code int, msg string) error { return jsonrpc.Errorf(jsonrpc.Code(code), "%s", msg) })
	})
	_ = jsonrpc.NewPeer(oursTransport(s), h,
		&jsonrpc.Options{Cancellation: jsonrpc.MCPCancel}).Run(context.Background())
}

// naiveTools handles one message after the other, and cannot ask.
func naiveTools(s *stream) {
	t, in, out := new(tools), bufio.NewReaderSize(s, 64<<10), json.NewEncoder(s)
	none := session{
		func(context.Context, question) (decision, error) { return decision{}, errors.New("it cannot ask") },
		func(_ context.Context, n progress) error {
			return out.Encode(naiveMessage{Version: "2.0", Method: "notifications/progress",
				Params: must(json.Marshal(n))})
		},
	}
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		check(json.Unmarshal(line, &m))
		v, err := t.handle(context.Background(), none, m.Method, m.Params)
		if m.ID != nil && err == nil {
			check(out.Encode(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": v}))
		}
	}
}

func lspdevTools(inline bool) func(*stream) {
	return func(s *stream) {
		t, c := new(tools), lspdev.NewConn(lspdev.NewNDJSONStream(s))
		client := session{
			func(ctx context.Context, q question) (d decision, err error) {
				_, err = c.Call(ctx, "elicitation/create", q, &d)
				return d, err
			},
			func(ctx context.Context, n progress) error { return c.Notify(ctx, "notifications/progress", n) },
		}
		c.Go(context.Background(), func(ctx context.Context, r *lspdev.Request) (any, error) {
			if r.IsCall() && (!inline || !strings.Contains(string(r.Params()), `"name":"echo"`)) {
				lspdev.Async(ctx)
			}
			v, err := t.handle(ctx, client, r.Method(), r.Params())
			if !r.IsCall() {
				return nil, nil // an error would end the connection
			}
			return v, coded(err, func(code int, msg string) error { return lspdev.NewError(lspdev.Code(code), msg) })
		})
		<-c.Done()
	}
}

func jrpc2Tools(s *stream) {
	t := new(tools)
	h := func(ctx context.Context, r *jrpc2.Request) (any, error) {
		srv, params := jrpc2.ServerFromContext(ctx), []byte(r.ParamString())
		v, err := t.handle(ctx, session{
			func(ctx context.Context, q question) (d decision, err error) {
				rsp, err := srv.Callback(ctx, "elicitation/create", q)
				if err == nil {
					err = rsp.UnmarshalResult(&d)
				}
				return d, err
			},
			func(ctx context.Context, n progress) error { return srv.Notify(ctx, "notifications/progress", n) },
		}, r.Method(), params)
		return v, coded(err, func(code int, msg string) error { return jrpc2.Errorf(jrpc2.Code(code), "%s", msg) })
	}
	m := handler.Map{"initialize": h, "ping": h, "tools/call": h, "notifications/progress": h}
	_ = jrpc2.NewServer(m, &jrpc2.ServerOptions{AllowPush: true, Concurrency: 128}).Start(channel.Line(s, s)).Wait()
}

type sourcegraphTools struct{ t *tools }

// Handle takes notifications on the read loop, which keeps their order, and each request on a goroutine of its own.
func (h sourcegraphTools) Handle(ctx context.Context, c *sourcegraph.Conn, r *sourcegraph.Request) {
	answer := func() {
		var params []byte
		if r.Params != nil {
			params = *r.Params
		}
		v, err := h.t.handle(ctx, session{
			func(ctx context.Context, q question) (d decision, err error) {
				return d, c.Call(ctx, "elicitation/create", q, &d)
			},
			func(ctx context.Context, n progress) error { return c.Notify(ctx, "notifications/progress", n) },
		}, r.Method, params)
		err = coded(err, func(code int, msg string) error {
			return &sourcegraph.Error{Code: int64(code),
				Message: msg}
		})
		e, own := errors.AsType[*sourcegraph.Error](err)
		switch {
		case r.Notif:
		case own:
			_ = c.ReplyWithError(ctx, r.ID, e)
		case err != nil:
			_ = c.ReplyWithError(ctx, r.ID, &sourcegraph.Error{Code: sourcegraph.CodeInternalError,
				Message: err.Error()})
		default:
			_ = c.Reply(ctx, r.ID, v)
		}
	}
	if r.Notif {
		answer()
	} else {
		go answer()
	}
}

func serveSourcegraphTools(s *stream) {
	c := sourcegraph.NewConn(context.Background(), sourcegraph.NewPlainObjectStream(s), sourcegraphTools{new(tools)})
	<-c.DisconnectNotify()
}

type xexpTools struct {
	t *tools
	c *xexp.Connection
}

func (h *xexpTools) Bind(_ context.Context, c *xexp.Connection) (xexp.ConnectionOptions, error) {
	h.c = c
	return xexp.ConnectionOptions{Framer: lineFramer{}, Handler: h}, nil
}

// Handle takes notifications in their order, and each request on a goroutine of its own.
func (h *xexpTools) Handle(ctx context.Context, r *xexp.Request) (any, error) {
	client := session{
		func(ctx context.Context, q question) (d decision, err error) {
			return d, h.c.Call(ctx, "elicitation/create", q).Await(ctx, &d)
		},
		func(ctx context.Context, n progress) error { return h.c.Notify(ctx, "notifications/progress", n) },
	}
	if !r.IsCall() {
		_, _ = h.t.handle(ctx, client, r.Method, r.Params)
		return nil, nil
	}
	go func() {
		v, err := h.t.handle(ctx, client, r.Method, r.Params)
		_ = h.c.Respond(r.ID, v, coded(err,
			func(code int, msg string) error { return xexp.NewError(int64(code), msg) }))
	}()
	return nil, xexp.ErrAsyncResponse
}

func serveXexpTools(s *stream) {
	c := must(xexp.Dial(context.Background(), oneStream{s}, &xexpTools{t: new(tools)}))
	_ = c.Wait()
}

func gosdkTools(s *stream) {
	t := new(tools)
	srv := gosdk.NewServer(&gosdk.Implementation{Name: "cases", Version: "1"}, &gosdk.ServerOptions{
		ProgressNotificationHandler: func(_ context.Context, r *gosdk.ProgressNotificationServerRequest) {
			t.progress(progress{Progress: r.Params.Progress})
		},
	})
	schema := json.RawMessage(`{"type":"object"}`)
	for _, name := range toolNames {
		srv.AddTool(&gosdk.Tool{Name: name, InputSchema: schema},
			func(ctx context.Context, r *gosdk.CallToolRequest) (*gosdk.CallToolResult, error) {
				var a arguments
				if len(r.Params.Arguments) > 0 {
					if err := json.Unmarshal(r.Params.Arguments, &a); err != nil {
						return nil, err
					}
				}
				text, err := t.call(ctx, session{
					func(ctx context.Context, q question) (decision, error) {
						e, err := r.Session.Elicit(ctx,
							&gosdk.ElicitParams{Message: q.Message, RequestedSchema: schema})
						if err != nil {
							return decision{}, err
						}
						return decision{e.Action}, nil
					},
					func(ctx context.Context, n progress) error {
						return r.Session.NotifyProgress(ctx,
							&gosdk.ProgressNotificationParams{ProgressToken: n.Token, Progress: n.Progress})
					},
				}, name, a.Text)
				if err != nil {
					return nil, err
				}
				return &gosdk.CallToolResult{Content: []gosdk.Content{&gosdk.TextContent{Text: text}}}, nil
			})
	}
	_ = srv.Run(context.Background(), gosdkTransport(s))
}

func mcpgoTools(s *stream) {
	t := new(tools)
	srv := server.NewMCPServer("cases", "1", server.WithElicitation())
	for _, name := range toolNames {
		srv.AddTool(mcp.NewTool(name), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text, err := t.call(ctx, session{
				func(ctx context.Context, q question) (decision, error) {
					var e mcp.ElicitationRequest
					e.Params.Message, e.Params.RequestedSchema = q.Message, map[string]any{"type": "object"}
					d, err := srv.RequestElicitation(ctx, e)
					if err != nil {
						return decision{}, err
					}
					return decision{string(d.Action)}, nil
				},
				func(ctx context.Context, n progress) error {
					return srv.SendNotificationToClient(ctx, "notifications/progress",
						map[string]any{"progressToken": n.Token, "progress": n.Progress})
				},
			}, name, r.GetString("text", ""))
			if err != nil {
				return nil, err
			}
			return mcp.NewToolResultText(text), nil
		})
	}
	srv.AddNotificationHandler("notifications/progress", func(_ context.Context, n mcp.JSONRPCNotification) {
		at, _ := n.Params.AdditionalFields["progress"].(float64)
		t.progress(progress{Progress: at})
	})
	stdio := server.NewStdioServer(srv)
	for _, o := range []server.StdioOption{server.WithWorkerPoolSize(100), server.WithQueueSize(10000),
		server.WithErrorLogger(log.New(io.Discard, "", 0))} {
		o(stdio)
	}
	_ = stdio.Listen(context.Background(), s, s)
}
