package telemetry

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// call observes a tools/call. Its span ends with the answer. Its turns may end later.
type call struct {
	t    *Telemetry
	ctx  context.Context // has the span, but not the request's cancellation or values
	span trace.Span
}

// Begin implements [codexserver.Observer]. Only tools/call has a span: clients poll with the
// other methods.
func (t *Telemetry) Begin(ctx context.Context, r *codexserver.Request) codexserver.CallObserver {
	if r.RPC == nil || r.RPC.Method != mcptypes.ToolsCall.Name() {
		return nil
	}
	c := &call{t: t, ctx: trace.ContextWithRemoteSpanContext(context.Background(), trace.SpanContextFromContext(ctx))}
	tool := ""
	if t.spans != nil {
		var meta propagation.MapCarrier
		if tool, meta = readParams(r.RPC); meta != nil {
			c.ctx = t.w3c.Extract(c.ctx, meta) // ignores an invalid traceparent
		}
	}
	name := "tools/call"
	attributes := []attribute.KeyValue{label("mcp.method.name", name), label("network.transport", "tcp")}
	if tool != "" {
		name += " " + tool
		attributes = append(attributes, label("gen_ai.tool.name", tool))
	}
	if r.Principal != "" {
		attributes = append(attributes, label("codex_mcp.principal", r.Principal))
	}
	c.ctx, c.span = t.tracer.Start(c.ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attributes...))
	return c
}

// End implements [codexserver.CallObserver].
func (c *call) End(err error) {
	if err != nil {
		c.span.SetStatus(codes.Error, "") // no text: the error may quote the client
	}
	c.span.End()
}

// Turn implements [codexserver.CallObserver].
func (c *call) Turn(thread string, used protocol.TokenUsage) codexserver.TurnObserver {
	return newTurn(c.t, c.ctx, thread, used)
}

// readParams returns the tool of a call and the trace in its _meta, or nil without one.
func readParams(r *jsonrpc.Request) (tool string, meta propagation.MapCarrier) {
	var p struct {
		Name string `json:"name"`
		Meta struct {
			Parent string `json:"traceparent"`
			State  string `json:"tracestate"`
		} `json:"_meta"`
	}
	if json.Unmarshal(r.Params, &p) != nil { // the server answers with an error
		return "", nil
	}
	if p.Meta.Parent != "" {
		meta = propagation.MapCarrier{"traceparent": p.Meta.Parent, "tracestate": p.Meta.State}
	}
	return knownTool(p.Name), meta
}

// knownTool returns name if the server has such a tool, otherwise "". So a span never has a
// text that a client made up.
func knownTool(name string) string {
	switch name {
	case "codex", "codex-reply", "codex-wait", "codex-show", "codex-worktree", "codex-review", "codex-list", "codex-interrupt", "codex-models":
		return name
	}
	return ""
}
