// Package toolserver is an MCP server with tools that may ask the user, for programs that want no more:
//
//	err := toolserver.New("deployer", "1.0", tools...).Run(ctx, jsonrpc.Stdio())
//
// It speaks MCP 2025-06-18 and 2025-11-25: initialize, ping, tools/list and tools/call. For more there are packages
// jsonrpc and mcptypes. MCP 2026-07-28, whose servers ask in the results of calls, is package codexserver's.
package toolserver

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// versions are those of the protocol, the newest first.
var versions = []string{"2025-11-25", mcptypes.ProtocolVersion}

// A Tool is what a client may call.
type Tool struct {
	// Tool is what tools/list says of it. Without an InputSchema its arguments are any object.
	mcptypes.Tool
	// Call does it, several times at once too. Nobody has checked the arguments, {} if the call has none, against the
	// schema. The model reads the text of an error, but a [*jsonrpc.Error] answers the request. ctx ends with the call.
	Call func(ctx context.Context, s *Server, arguments json.RawMessage) (*mcptypes.CallToolResult, error)
}

// A Server serves one client. Its methods are safe for concurrent use.
type Server struct {
	// Questions says how [Server.Ask] asks, and what happens without a person's decision. Set it before Run. Default: nil,
	// with which every failure denies.
	Questions *elicit.Options

	info  mcptypes.Implementation
	tools []Tool

	mu    sync.Mutex    // guards what follows
	peer  *jsonrpc.Peer // does not change once it is set
	asker *elicit.Asker // nil before initialize
}

// New returns a server that says that it has this name and version, and has these tools.
func New(name, version string, tools ...Tool) *Server {
	tools = slices.Clone(tools)
	for i := range tools {
		if tools[i].InputSchema == nil {
			tools[i].InputSchema = json.RawMessage(`{"type":"object"}`)
		}
	}
	return &Server{info: mcptypes.Implementation{Name: name, Version: version}, tools: tools}
}

// Run serves the client at the other end of t, and returns as [jsonrpc.Peer.Run] does: nil when the client has gone. A
// second Run is an error, because a question of one client must not reach another.
func (s *Server) Run(ctx context.Context, t jsonrpc.Transport) error {
	m := new(jsonrpc.Mux)
	mcptypes.Initialize.Handle(m, s.initialize)
	mcptypes.Ping.Handle(m, func(context.Context, *mcptypes.PingRequestParams) (*mcptypes.EmptyResult, error) {
		return new(mcptypes.EmptyResult), nil
	})
	mcptypes.ToolsList.Handle(m, s.list)
	mcptypes.ToolsCall.Handle(m, s.call)
	// On the reader, so that a call that comes next finds its result.
	o := &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel, Inline: jsonrpc.Methods(mcptypes.Initialize.Name())}
	s.mu.Lock()
	if s.peer != nil {
		s.mu.Unlock()
		return errors.New("toolserver: Run called twice")
	}
	s.peer = jsonrpc.NewPeer(t, m, o)
	s.mu.Unlock()
	return s.peer.Run(ctx)
}

// Ask asks the user by [elicit.Asker.Ask], for yes or no without a schema. Pass the call's context, and end with [elicit.Outcome.ForCaller].
func (s *Server) Ask(ctx context.Context, q *elicit.Question) elicit.Outcome {
	s.mu.Lock()
	asker := s.asker
	s.mu.Unlock()
	if asker == nil {
		return q.ReadError(elicit.ErrUnsupported, s.Questions)
	}
	return asker.Ask(ctx, q)
}

func (s *Server) initialize(
	_ context.Context, p *mcptypes.InitializeRequestParams,
) (*mcptypes.InitializeResult, error) {
	version := versions[0]
	if slices.Contains(versions, p.ProtocolVersion) {
		version = p.ProtocolVersion
	}
	s.mu.Lock()
	client := elicit.Client{Capabilities: p.Capabilities, ProtocolVersion: version, Name: p.ClientInfo.Name}
	s.asker = elicit.NewAsker(s.peer, client, s.Questions)
	s.mu.Unlock()
	able := mcptypes.ServerCapabilities{Tools: new(mcptypes.ServerCapabilitiesTools)}
	return &mcptypes.InitializeResult{ProtocolVersion: version, Capabilities: able, ServerInfo: s.info}, nil
}

func (s *Server) list(context.Context, *mcptypes.ListToolsRequestParams) (*mcptypes.ListToolsResult, error) {
	r := new(mcptypes.ListToolsResult)
	for _, t := range s.tools {
		r.Tools = append(r.Tools, t.Tool)
	}
	return r, nil
}

func (s *Server) call(ctx context.Context, p *mcptypes.CallToolRequestParams) (*mcptypes.CallToolResult, error) {
	i := slices.IndexFunc(s.tools, func(t Tool) bool { return t.Name == p.Name })
	if i < 0 {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown tool: %s", p.Name)
	}
	if p.Arguments == nil {
		p.Arguments = json.RawMessage("{}")
	}
	r, err := s.tools[i].Call(ctx, s, p.Arguments)
	if _, own := errors.AsType[*jsonrpc.Error](err); err != nil && !own {
		return &mcptypes.CallToolResult{Content: mcptypes.Text(err.Error()), IsError: new(true)}, nil
	}
	return r, err
}
