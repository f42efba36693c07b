package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"
	sourcegraph "github.com/sourcegraph/jsonrpc2"
	lspdev "go.lsp.dev/jsonrpc2"
	xexp "golang.org/x/exp/jsonrpc2"
)

// A handle handles one request. params are the bytes that the package gives its handlers.
type handle func(ctx context.Context, params []byte) (any, error)

// An asking sends a text to the other end, and decodes the result into what the third argument points to, if anything.
type asking func(ctx context.Context, text string, result any) error

// A join connects an end that handles requests on goroutines, or where its name says so on the reader, as the peers of the
// benchmark do. It returns when the end may call.
type join func(s *stream, server bool, h handle) asking

// joins are the packages that can be met with hazards, by the name of their peer. With typed the caller chooses a result's
// type.
var joins = map[string]struct {
	join  join
	typed bool
}{
	oursPeer.name:         {joinOurs(false), true},
	inlinePeer.name:       {joinOurs(true), true},
	jrpc2Peer.name:        {joinJRPC2, true},
	mcpgoPeer.name:        {joinMCPGo, false},
	sourcegraphPeer.name:  {joinSourcegraph, true},
	xexpPeer.name:         {joinXexp, true},
	lspdevPeer.name:       {joinLspdev(false), true},
	lspdevInlinePeer.name: {joinLspdev(true), true},
	gosdkPeer.name:        {joinGoSDK, false},
	naivePeer.name:        {joinNaive, true},
}

const callTool = "tools/call"

func joinOurs(inline bool) join {
	return func(s *stream, _ bool, h handle) asking {
		p := jsonrpc.NewPeer(jsonrpc.Lines(s.Reader, s.Writer, s), jsonrpc.HandlerFunc(
			func(ctx context.Context, r *jsonrpc.Request) (any, error) { return h(ctx, r.Params) },
		), &jsonrpc.Options{Inline: func(*jsonrpc.Request) bool { return inline }})
		go func() { _ = p.Run(context.Background()) }()
		return func(ctx context.Context, text string, result any) error {
			return p.Call(ctx, callTool, call("x", text, 0), result)
		}
	}
}

func joinLspdev(inline bool) join {
	return func(s *stream, _ bool, h handle) asking {
		c := lspdev.NewConn(lspdev.NewNDJSONStream(s))
		c.Go(context.Background(), func(ctx context.Context, r *lspdev.Request) (any, error) {
			if !inline {
				lspdev.Async(ctx)
			}
			return h(ctx, r.Params())
		})
		return func(ctx context.Context, text string, result any) error {
			_, err := c.Call(ctx, callTool, call("x", text, 0), orAny(result))
			return err
		}
	}
}

// orAny returns a value to decode into.
func orAny(result any) any {
	if result == nil {
		return new(json.RawMessage)
	}
	return result
}

// everyMethod is handled by one function.
type everyMethod func(context.Context, *jrpc2.Request) (any, error)

func (m everyMethod) Assign(context.Context, string) jrpc2.Handler { return jrpc2.Handler(m) }

func joinJRPC2(s *stream, isServer bool, h handle) asking {
	handler := func(ctx context.Context, r *jrpc2.Request) (any, error) {
		var params json.RawMessage
		_ = r.UnmarshalParams(&params) // without params there are none
		return h(ctx, params)
	}
	var send func(ctx context.Context, p callParams) (*jrpc2.Response, error)
	if isServer {
		o := &jrpc2.ServerOptions{AllowPush: true, Concurrency: 128}
		srv := jrpc2.NewServer(everyMethod(handler), o).Start(channel.Line(s, s))
		send = func(ctx context.Context, p callParams) (*jrpc2.Response, error) {
			return srv.Callback(ctx, callTool, p)
		}
	} else {
		c := jrpc2.NewClient(channel.Line(s, s), &jrpc2.ClientOptions{OnCallback: handler})
		send = func(ctx context.Context, p callParams) (*jrpc2.Response, error) { return c.Call(ctx, callTool, p) }
	}
	return func(ctx context.Context, text string, result any) error {
		r, err := send(ctx, call("x", text, 0))
		if err != nil {
			return err
		}
		return r.UnmarshalResult(orAny(result))
	}
}

type sourcegraphJoin struct{ h handle }

func (j sourcegraphJoin) Handle(ctx context.Context, c *sourcegraph.Conn, r *sourcegraph.Request) {
	go func() {
		v, err := j.h(ctx, *r.Params)
		if err != nil {
			_ = c.ReplyWithError(ctx, r.ID, &sourcegraph.Error{Code: sourcegraph.CodeInternalError,
				Message: err.Error()})
			return
		}
		_ = c.Reply(ctx, r.ID, v)
	}()
}

func joinSourcegraph(s *stream, _ bool, h handle) asking {
	c := sourcegraph.NewConn(context.Background(), sourcegraph.NewPlainObjectStream(s), sourcegraphJoin{h})
	return func(ctx context.Context, text string, result any) error {
		return c.Call(ctx, callTool, call("x", text, 0), orAny(result))
	}
}

type xexpJoin struct {
	h handle
	c *xexp.Connection
}

func (j *xexpJoin) Bind(_ context.Context, c *xexp.Connection) (xexp.ConnectionOptions, error) {
	j.c = c
	return xexp.ConnectionOptions{Framer: lineFramer{}, Handler: j}, nil
}

func (j *xexpJoin) Handle(ctx context.Context, r *xexp.Request) (any, error) {
	go func() {
		v, err := j.h(ctx, r.Params)
		_ = j.c.Respond(r.ID, v, err)
	}()
	return nil, xexp.ErrAsyncResponse
}

func joinXexp(s *stream, _ bool, h handle) asking {
	c := must(xexp.Dial(context.Background(), oneStream{s}, &xexpJoin{h: h}))
	return func(ctx context.Context, text string, result any) error {
		return c.Call(ctx, callTool, call("x", text, 0)).Await(ctx, orAny(result))
	}
}

func joinGoSDK(s *stream, isServer bool, h handle) asking {
	ctx := context.Background()
	if !isServer {
		c := gosdk.NewClient(&gosdk.Implementation{Name: "bench", Version: "1"}, &gosdk.ClientOptions{
			ElicitationHandler: func(ctx context.Context, r *gosdk.ElicitRequest) (*gosdk.ElicitResult, error) {
				return &gosdk.ElicitResult{Action: "accept"}, nil
			},
		})
		session := must(c.Connect(ctx, gosdkTransport(s), &gosdk.ClientSessionOptions{ProtocolVersion: "2025-06-18"}))
		return func(ctx context.Context, text string, _ any) error {
			r, err := session.CallTool(ctx, &gosdk.CallToolParams{Name: "x", Arguments: arguments{Text: text}})
			return toolFailed(err, err == nil && r.IsError)
		}
	}
	srv := gosdk.NewServer(&gosdk.Implementation{Name: "bench", Version: "1"}, nil)
	schema := json.RawMessage(`{"type":"object"}`)
	srv.AddTool(&gosdk.Tool{Name: "x", InputSchema: schema},
		func(ctx context.Context, r *gosdk.CallToolRequest) (*gosdk.CallToolResult, error) {
			v, err := h(ctx, r.Params.Arguments)
			if err != nil {
				return nil, err
			}
			text := v.(callResult).Content[0].Text
			return &gosdk.CallToolResult{Content: []gosdk.Content{&gosdk.TextContent{Text: text}}}, nil
		})
	session := must(srv.Connect(ctx, gosdkTransport(s), nil))
	return func(ctx context.Context, text string, _ any) error {
		_, err := session.Elicit(ctx, &gosdk.ElicitParams{Message: text, RequestedSchema: schema})
		return err
	}
}

func joinMCPGo(s *stream, isServer bool, h handle) asking {
	if !isServer {
		c := client.NewClient(transport.NewIO(s, s, io.NopCloser(strings.NewReader(""))),
			client.WithElicitationHandler(accepter{}))
		ctx := context.Background()
		check(c.Start(ctx))
		var init mcp.InitializeRequest
		init.Params.ProtocolVersion = "2025-06-18"
		init.Params.ClientInfo = mcp.Implementation{Name: "bench", Version: "1"}
		must(c.Initialize(ctx, init))
		return func(ctx context.Context, text string, _ any) error {
			var r mcp.CallToolRequest
			r.Params.Name, r.Params.Arguments = "x", arguments{Text: text}
			answer, err := c.CallTool(ctx, r)
			return toolFailed(err, err == nil && answer.IsError)
		}
	}
	hooks, registered := new(server.Hooks), make(chan server.ClientSession, 1)
	hooks.AddOnRegisterSession(func(_ context.Context, session server.ClientSession) { registered <- session })
	srv := server.NewMCPServer("bench", "1", server.WithElicitation(), server.WithHooks(hooks))
	srv.AddTool(mcp.NewTool("x"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		v, err := h(ctx, must(json.Marshal(r.GetArguments())))
		if err != nil {
			return nil, err
		}
		return mcp.NewToolResultText(v.(callResult).Content[0].Text), nil
	})
	go func() { _ = server.NewStdioServer(srv).Listen(context.Background(), s, s) }()
	session := <-registered
	return func(ctx context.Context, text string, _ any) error {
		var q mcp.ElicitationRequest
		q.Params.Message, q.Params.RequestedSchema = text, map[string]any{"type": "object"}
		_, err := srv.RequestElicitation(srv.WithContext(ctx, session), q)
		return err
	}
}

// joinNaive does what serveNaive and dialNaive do, at both ends.
func joinNaive(s *stream, _ bool, h handle) asking {
	n := newNaive(s)
	var mu sync.Mutex // held while writing, so that the queue has the order of the answers
	var queue []chan json.RawMessage
	go func() {
		for {
			m, err := n.read()
			if err != nil {
				return
			}
			if m.Method != "" {
				n.write(naiveMessage{ID: m.ID, Result: must(json.Marshal(must(h(context.Background(), m.Params))))})
				continue
			}
			mu.Lock()
			waiting := queue[0]
			queue = queue[1:]
			mu.Unlock()
			waiting <- m.Result
		}
	}()
	return func(_ context.Context, text string, result any) error {
		answer := make(chan json.RawMessage, 1)
		mu.Lock()
		queue = append(queue, answer)
		n.write(naiveMessage{ID: new(int64(1)), Method: callTool, Params: must(json.Marshal(call("x", text, 0)))})
		mu.Unlock()
		return json.Unmarshal(<-answer, orAny(result))
	}
}

var errTool = errors.New("the tool failed")

// toolFailed is the error of a call of a tool, whose own errors are results.
func toolFailed(err error, isError bool) error {
	if isError {
		return errTool
	}
	return err
}
