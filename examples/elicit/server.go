package main

import (
	"context"
	"fmt"
	"os/exec"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
)

// server is one session with one client.
type server struct {
	repo  string
	peer  *jsonrpc.Peer
	asker atomic.Pointer[elicit.Asker] // nil before initialize
}

func serve(ctx context.Context, t jsonrpc.Transport, repo string) error {
	s, mux := &server{repo: repo}, &jsonrpc.Mux{}
	mcptypes.Initialize.Handle(mux, s.initialize)
	mcptypes.Ping.Handle(mux, func(context.Context, *mcptypes.PingRequestParams) (*mcptypes.EmptyResult, error) {
		return &mcptypes.EmptyResult{}, nil
	})
	mcptypes.ToolsList.Handle(mux, s.listTools)
	mcptypes.ToolsCall.Handle(mux, s.callTool)
	s.peer = jsonrpc.NewPeer(t, mux, &jsonrpc.Options{
		Cancellation: jsonrpc.MCPCancel,
		Inline:       jsonrpc.Methods(mcptypes.Initialize.Name()), // later requests need its result
	})
	return s.peer.Run(ctx)
}

// initialize makes the asker from the client's capabilities.
func (s *server) initialize(
	_ context.Context, p *mcptypes.InitializeRequestParams,
) (*mcptypes.InitializeResult, error) {
	s.asker.Store(elicit.NewAsker(s.peer, elicit.Client{
		Capabilities:    p.Capabilities,
		ProtocolVersion: mcptypes.ProtocolVersion,
		Name:            p.ClientInfo.Name,
	}, nil))
	return &mcptypes.InitializeResult{
		ProtocolVersion: mcptypes.ProtocolVersion,
		Capabilities:    mcptypes.ServerCapabilities{Tools: &mcptypes.ServerCapabilitiesTools{}},
		ServerInfo:      mcptypes.Implementation{Name: "elicit-example", Version: "1"},
	}, nil
}

func (s *server) listTools(context.Context, *mcptypes.ListToolsRequestParams) (*mcptypes.ListToolsResult, error) {
	return &mcptypes.ListToolsResult{Tools: []mcptypes.Tool{{
		Name:        "delete_branch",
		Description: new("Delete a git branch, if the user allows it."),
		InputSchema: []byte(`{"type":"object","properties":{"branch":{"type":"string"}},"required":["branch"]}`),
		Annotations: &mcptypes.ToolAnnotations{DestructiveHint: new(true)},
	}}}, nil
}

func (s *server) callTool(ctx context.Context, p *mcptypes.CallToolRequestParams) (*mcptypes.CallToolResult, error) {
	asker := s.asker.Load()
	switch {
	case asker == nil:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "not initialized")
	case p.Name != "delete_branch":
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown tool %q", p.Name)
	}
	var arguments struct {
		Branch string `json:"branch"`
	}
	if err := json.Unmarshal(p.Arguments, &arguments); err != nil {
		return failed("arguments: " + err.Error()), nil
	}
	return s.deleteBranch(ctx, asker, arguments.Branch), nil
}

// deleteBranch is the tool: it asks, and acts if the answer approves.
func (s *server) deleteBranch(ctx context.Context, asker *elicit.Asker, branch string) *mcptypes.CallToolResult {
	if output, err := s.git(ctx, "show-ref", "--verify", "refs/heads/"+branch); err != nil {
		return failed(fmt.Sprintf("there is no branch %q: %s", branch, output)) // without asking
	}
	out := asker.Ask(ctx, &elicit.Question{
		// The name comes from a model: %q shows invisible characters.
		Message: fmt.Sprintf("Delete the branch %q of %s?", branch, s.repo),
		NotDone: "the branch was not deleted",
		Once:    true, // an approval is for this branch only
	})
	if !out.Decision.Approves() {
		return failed("not deleted: " + out.ForModel())
	}
	output, err := s.git(ctx, "branch", "-D", "--", branch)
	if err != nil {
		return failed(fmt.Sprintf("git: %v\n%s", err, output))
	}
	return &mcptypes.CallToolResult{Content: mcptypes.Text(output)}
}

func (s *server) git(ctx context.Context, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "git", append([]string{"-C", s.repo}, args...)...).CombinedOutput()
	return string(output), err
}

func failed(why string) *mcptypes.CallToolResult {
	return &mcptypes.CallToolResult{Content: mcptypes.Text(why), IsError: new(true)}
}
