package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// protocolVersions are the supported versions of MCP, oldest first. The types are those of
// 2025-06-18. Additions of later versions are sent as extra members.
var protocolVersions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// batches is the version whose clients may send batches. It alone has them.
const batches = "2025-03-26"

// negotiate returns the requested version if it is supported, and the newest otherwise (MCP
// 2025-06-18, basic/lifecycle#version-negotiation).
func negotiate(asked string) string {
	if slices.Contains(protocolVersions, asked) {
		return asked
	}
	return protocolVersions[len(protocolVersions)-1]
}

func (ss *LegacySession) initialize(_ context.Context, p *mcptypes.InitializeRequestParams) (*mcptypes.InitializeResult, error) {
	who := elicit.Client{ProtocolVersion: negotiate(p.ProtocolVersion), Name: p.ClientInfo.Name}
	if !ss.unasked {
		who.Capabilities = p.Capabilities
	}
	version := who.ProtocolVersion
	before := ss.hello.Load()
	if before.params != nil || !ss.hello.CompareAndSwap(before, &hello{p, version, who.CanAsk(), elicit.NewAsker(ss.peer, who, &ss.client.server.Approvals)}) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "initialize called more than once")
	}
	if version == batches {
		ss.peer.AcceptBatches()
	}
	ss.Begin()
	extra := map[string]json.RawMessage{"user_agent": quote(userAgent(ss.client.server.Version, p.ClientInfo))}
	if info := ss.client.server.engineInfo(); info != nil {
		extra["engine"] = info
	}
	return &mcptypes.InitializeResult{
		ProtocolVersion: version,
		Capabilities: mcptypes.ServerCapabilities{
			Tools:   &mcptypes.ServerCapabilitiesTools{},
			Logging: map[string]json.RawMessage{},
		},
		ServerInfo: mcptypes.Implementation{
			Name:    "codex-mcp",
			Title:   new("Codex"),
			Version: ss.client.server.Version,
			Extra:   extra,
		},
		Instructions: new(ss.client.server.Tools.Instructions()),
	}, nil
}

// UserAgent returns the user agent in the form of the server of September 2025.
func (ss *LegacySession) UserAgent() string {
	return userAgent(ss.client.server.Version, ss.hello.Load().info())
}

func userAgent(version string, client mcptypes.Implementation) string {
	term := os.Getenv("TERM")
	if term == "" {
		term = "unknown"
	}
	agent := fmt.Sprintf("codex_cli_rs/%s (%s; %s) %s", version, runtime.GOOS, runtime.GOARCH, term)
	if client.Name != "" {
		agent += fmt.Sprintf(" (%s; %s)", client.Name, client.Version)
	}
	return agent
}

func (ss *LegacySession) ping(context.Context, *mcptypes.PingRequestParams) (*mcptypes.EmptyResult, error) {
	return &mcptypes.EmptyResult{}, nil
}

func (ss *LegacySession) setLevel(_ context.Context, p *mcptypes.SetLevelRequestParams) (*mcptypes.EmptyResult, error) {
	ss.mu.Lock()
	ss.level = p.Level
	ss.mu.Unlock()
	return &mcptypes.EmptyResult{}, nil
}
