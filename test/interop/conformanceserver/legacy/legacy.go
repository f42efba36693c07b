// Package legacy is an MCP server of the versions with a handshake that has, by the
// names it asks for, what the official conformance suite calls.
package legacy

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// Serve serves one client until t or ctx ends.
func Serve(ctx context.Context, t jsonrpc.Transport) error {
	f := newFeatures()
	methods := f.mux()
	handler := jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		return methods.ServeRPC(context.WithValue(ctx, requestKey{}, r.ID), r)
	})
	f.peer = jsonrpc.NewPeer(t, handler, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	return f.peer.Run(ctx)
}

// requestKey is the context's key of the id of the request that is answered.
type requestKey struct{}

// features is one client's session.
type features struct {
	peer *jsonrpc.Peer

	mu         sync.Mutex
	client     elicit.Client
	level      mcptypes.LoggingLevel
	subscribed map[string]bool
}

func newFeatures() *features {
	return &features{level: mcptypes.LoggingLevelInfo, subscribed: map[string]bool{}}
}

func (f *features) mux() *jsonrpc.Mux {
	m := &jsonrpc.Mux{}
	mcptypes.Initialize.Handle(m, f.initialize)
	mcptypes.Ping.Handle(m, func(context.Context, *mcptypes.PingRequestParams) (*mcptypes.EmptyResult, error) {
		return &mcptypes.EmptyResult{}, nil
	})
	mcptypes.LoggingSetLevel.Handle(m, func(_ context.Context,
		p *mcptypes.SetLevelRequestParams) (*mcptypes.EmptyResult, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.level = p.Level
		return &mcptypes.EmptyResult{}, nil
	})
	mcptypes.CompletionComplete.Handle(m,
		func(_ context.Context, p *mcptypes.CompleteRequestParams) (*mcptypes.CompleteResult, error) {
			completion := mcptypes.CompleteResultCompletion{Values: []string{p.Argument.Value + "ing"}}
			return &mcptypes.CompleteResult{Completion: completion}, nil
		})
	mcptypes.ToolsList.Handle(m, listTools)
	mcptypes.ToolsCall.Handle(m, f.callTool)
	mcptypes.ResourcesList.Handle(m, listResources)
	mcptypes.ResourcesTemplatesList.Handle(m, listTemplates)
	mcptypes.ResourcesRead.Handle(m, readResource)
	mcptypes.ResourcesSubscribe.Handle(m,
		func(_ context.Context, p *mcptypes.SubscribeRequestParams) (*mcptypes.EmptyResult, error) {
			return f.subscribe(p.URI, true)
		})
	mcptypes.ResourcesUnsubscribe.Handle(m,
		func(_ context.Context, p *mcptypes.UnsubscribeRequestParams) (*mcptypes.EmptyResult, error) {
			return f.subscribe(p.URI, false)
		})
	mcptypes.PromptsList.Handle(m, listPrompts)
	mcptypes.PromptsGet.Handle(m, getPrompt)
	return m
}

func (f *features) initialize(
	_ context.Context, p *mcptypes.InitializeRequestParams,
) (*mcptypes.InitializeResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.client = elicit.Client{Capabilities: p.Capabilities, ProtocolVersion: p.ProtocolVersion, Name: p.ClientInfo.Name}
	none := map[string]json.RawMessage{}
	return &mcptypes.InitializeResult{
		ProtocolVersion: p.ProtocolVersion,
		Capabilities: mcptypes.ServerCapabilities{
			Completions: none,
			Logging:     none,
			Prompts:     &mcptypes.ServerCapabilitiesPrompts{},
			Resources:   &mcptypes.ServerCapabilitiesResources{Subscribe: new(true)},
			Tools:       &mcptypes.ServerCapabilitiesTools{},
		},
		ServerInfo: mcptypes.Implementation{Name: "conformance", Version: "1"},
	}, nil
}
