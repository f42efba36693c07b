package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// protocolVersions are the supported versions of MCP, oldest first. The types are those of
// 2025-06-18. Additions of later versions are sent as extra members.
var protocolVersions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// batches is the version whose clients may send batches. It alone has them.
const batches = "2025-03-26"

func (c *Connection) initialize(
	_ context.Context, p *mcptypes.InitializeRequestParams,
) (*mcptypes.InitializeResult, error) {
	who := elicit.Client{ProtocolVersion: p.ProtocolVersion, Name: p.ClientInfo.Name}
	if !slices.Contains(protocolVersions, p.ProtocolVersion) { // MCP 2025-06-18, basic/lifecycle#version-negotiation
		who.ProtocolVersion = protocolVersions[len(protocolVersions)-1]
	}
	if c.asks {
		who.Capabilities = p.Capabilities
	}
	before := c.hello.Load()
	after := &hello{p, who, elicit.NewAsker(c.peer, who, &c.session.server.Approvals)}
	if before.params != nil || !c.hello.CompareAndSwap(before, after) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "initialize called more than once")
	}
	c.note(&c.began)
	extra := map[string]json.RawMessage{"user_agent": quote(c.UserAgent())}
	if info := c.session.server.engineInfo(); info != nil {
		extra["engine"] = info
	}
	return &mcptypes.InitializeResult{
		ProtocolVersion: who.ProtocolVersion,
		Capabilities: mcptypes.ServerCapabilities{
			Tools:   &mcptypes.ServerCapabilitiesTools{},
			Logging: map[string]json.RawMessage{},
		},
		ServerInfo: mcptypes.Implementation{
			Name:    "codex-mcp",
			Title:   new(c.session.server.Tools.Title()),
			Version: c.session.server.Version,
			Extra:   extra,
		},
		Instructions: new(c.session.server.Tools.Instructions()),
	}, nil
}

// UserAgent returns the user agent in the form of the server of September 2025.
func (c *Connection) UserAgent() string {
	term := cmp.Or(os.Getenv("TERM"), "unknown")
	agent := fmt.Sprintf("codex_cli_rs/%s (%s; %s) %s", c.session.server.Version, runtime.GOOS, runtime.GOARCH, term)
	if p := c.hello.Load().params; p != nil && p.ClientInfo.Name != "" {
		agent += fmt.Sprintf(" (%s; %s)", p.ClientInfo.Name, p.ClientInfo.Version)
	}
	return agent
}

func (c *Connection) ping(context.Context, *mcptypes.PingRequestParams) (*mcptypes.EmptyResult, error) {
	return &mcptypes.EmptyResult{}, nil
}

func (c *Connection) setLevel(_ context.Context, p *mcptypes.SetLevelRequestParams) (*mcptypes.EmptyResult, error) {
	c.level.Store(&p.Level)
	return &mcptypes.EmptyResult{}, nil
}

// rootsTimeout is how long the request for the client's roots may take.
const rootsTimeout = 5 * time.Second

// Roots returns the client's roots that are folders (MCP 2025-06-18, client/roots).
func (c *Connection) Roots(ctx context.Context) (folders []string) {
	if p := c.hello.Load().params; p == nil || p.Capabilities.Roots == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, rootsTimeout)
	defer cancel()
	list, err := mcptypes.RootsList.Call(ctx, c.peer, nil)
	if err != nil {
		c.session.Log().Warn("roots of the client", "error", err)
		return nil
	}
	for _, root := range list.Roots {
		if path, ok := filePath(root.URI); ok {
			folders = append(folders, path)
		}
	}
	return folders
}

// filePath returns the path of a file URI on this machine.
func filePath(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return "", false
	}
	path := filepath.FromSlash(u.Path)
	if filepath.Separator != '/' { // file:///C:/x
		path = strings.TrimPrefix(path, string(filepath.Separator))
	}
	return path, filepath.IsAbs(path)
}

func (c *Connection) listTools(context.Context, *mcptypes.ListToolsRequestParams) (*mcptypes.ListToolsResult, error) {
	list := c.session.server.Tools.List(false)
	for i := range list {
		if !c.speaks("2025-06-18") {
			list[i].Title, list[i].OutputSchema = nil, nil
		}
		if !c.speaks("2025-03-26") {
			list[i].Annotations = nil
		}
	}
	return &mcptypes.ListToolsResult{Tools: list}, nil
}

// objectIn returns the object that a text has as JSON, and any other value as it is.
func objectIn(value jsontext.Value) jsontext.Value {
	var text string
	if value.Kind() != '"' || jsonv2.Unmarshal(value, &text) != nil {
		return value
	}
	if object := jsontext.Value(text); object.IsValid() && object.Kind() == '{' {
		return object
	}
	return value
}

func (c *Connection) callTool(ctx context.Context, r *jsonrpc.Request) (any, error) {
	var p mcptypes.CallToolRequestParams
	if err := r.Bind(&p); err != nil { // perhaps because the arguments are a text
		m, _ := members("", jsontext.Value(r.Params))
		object := objectIn(m["arguments"])
		if object.Kind() != '{' {
			return nil, err
		}
		m["arguments"] = object
		params, _ := jsonv2.Marshal(m) // its members were read
		if (&jsonrpc.Request{Params: params}).Bind(&p) != nil {
			return nil, err
		}
	}
	if !tools.IsShort(p.Name) {
		leave, err := c.session.Enter()
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	began, to := time.Now(), &recipient{request: r.ID, events: true}
	if p.Meta != nil {
		to.token = p.Meta.ProgressToken
	}
	o := c.outlet(to)
	defer o.detach(ctx)
	awaited, others := c.attend(callID(r.ID), o)
	tc := c.session.call(r.ID, c.ClientName(), awaited, others)
	c.home.survive(tc, p.Name, c.canAsk, others.Ask)
	known := c.hello.Load().params != nil // nobody gives a call up without initialize
	if most := c.session.server.Tools.MayTake(p.Name, c.ClientName(), false); known && most > 0 {
		until, stop := context.WithDeadlineCause(ctx, began.Add(most), tools.ErrLimit)
		defer stop()
		tc.Until = until
	}
	tc.Roots = c.Roots
	result := c.session.server.Tools.Call(ctx, tc, p.Name, p.Arguments)
	o.detach(ctx) // the turn may go on
	// The events already have the answer twice, so the client reads them before the result.
	c.session.pace.wait(ctx, c.peer, c.session.server.MaxUnread)
	if ctx.Err() == nil {
		tc.Answered()
	} else {
		tc.GaveUp()
	}
	// The peer's encoder would keep several copies of a long result while it validates it.
	text, err := mcptypes.Encode(result)
	return json.RawMessage(text), err
}
