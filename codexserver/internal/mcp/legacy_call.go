package mcp

import (
	"context"
	stdjson "encoding/json"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func (ss *LegacySession) listTools(context.Context, *mcptypes.ListToolsRequestParams) (*mcptypes.ListToolsResult, error) {
	list, err := ss.client.server.Tools.List()
	if err != nil {
		return nil, err
	}
	for i := range list {
		if !ss.speaks("2025-06-18") {
			list[i].Title, list[i].OutputSchema = nil, nil
		}
		if !ss.speaks("2025-03-26") {
			list[i].Annotations = nil
		}
	}
	return &mcptypes.ListToolsResult{Tools: list}, nil
}

// withArguments returns the params of a call whose arguments are a text with JSON, as the object that it has.
// Clients before 2026-07-28 that send them so are refused otherwise by the type of the params.
func withArguments(params stdjson.RawMessage) (stdjson.RawMessage, bool) {
	var members map[string]jsontext.Value
	if json.Unmarshal(params, &members) != nil || members["arguments"].Kind() != '"' {
		return nil, false
	}
	members["arguments"] = objectIn(members["arguments"])
	changed, err := json.Marshal(members)
	return changed, err == nil
}

// objectIn returns the object that a text has as JSON, and any other value as it is.
func objectIn(value jsontext.Value) jsontext.Value {
	var text string
	if value.Kind() != '"' || json.Unmarshal(value, &text) != nil {
		return value
	}
	if object := jsontext.Value(text); object.IsValid() && object.Kind() == '{' {
		return object
	}
	return value
}

func (ss *LegacySession) callTool(ctx context.Context, r *jsonrpc.Request) (any, error) {
	var p mcptypes.CallToolRequestParams
	if err := r.Bind(&p); err != nil {
		params, ok := withArguments(r.Params)
		if !ok || (&jsonrpc.Request{Params: params}).Bind(&p) != nil {
			return nil, err
		}
	}
	if !tools.IsShort(p.Name) {
		leave, err := ss.Enter()
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	began, to := time.Now(), &recipient{request: r.ID, events: true}
	if p.Meta != nil {
		to.token = p.Meta.ProgressToken
	}
	o := ss.outlet(to)
	defer o.detach()
	var turn atomic.Pointer[tools.Turn]
	awaited, others := ss.attend(ctx, callID(r.ID), o)
	c := ss.client.call(r.ID, ss.Host(), awaited, others)
	if home := ss.client.home; home != nil {
		var ask approve.Place
		if ss.canAsk() {
			ask = others.Ask
		}
		home.survive(c, p.Name, ss.canAsk, ask)
	}
	if most := ss.mayTake(p.Name); most > 0 {
		c.Deadline = tools.NewDeadline(ctx)
		defer c.Deadline.Set(began.Add(most))()
	}
	c.Folder, c.Folders, c.Begun = ss.folder, ss.Folders, turn.Store
	result := ss.client.server.Tools.Call(ctx, c, p.Name, p.Arguments)
	if t := turn.Load(); t != nil && t.InBackground() {
		o.detach()
	}
	ss.client.pace.wait(ctx, ss.peer, ss.client.server.MaxUnread) // before the result, since the events already have the answer twice
	if ctx.Err() == nil {
		c.Answered()
	}
	return encodeResult(result)
}

// mayTake returns how long a call of a tool may take, 0 for no limit. Without initialize
// nobody gives it up.
func (ss *LegacySession) mayTake(tool string) time.Duration {
	if ss.hello.Load().params == nil {
		return 0
	}
	return ss.client.server.Tools.MayTake(tool, ss.Host(), false)
}

// encodeResult encodes a result into a buffer of about its size. The answer may be long,
// and the peer's encoder would keep several copies of it while it validates the JSON.
func encodeResult(r *mcptypes.CallToolResult) (stdjson.RawMessage, error) {
	size := len(r.StructuredContent) + 1<<10
	for _, text := range tools.Texts(r) {
		size += len(text) + len(text)/16 // room for escapes
	}
	return mcptypes.AppendJSON(make([]byte, 0, size), r)
}
