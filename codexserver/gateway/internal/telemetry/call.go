package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Call records a tools/call. Its span ends with the answer. Its turns may end later.
type Call struct {
	u    *User
	ctx  context.Context // has the span
	span trace.Span
}

// Begin records the start of a tools/call of a principal.
// The call belongs to the last of the traces that is valid. If one before it names another span
// of the same trace, that one is the parent: it is the span of the node, and the other one that
// of the client. A trace has the members traceparent and tracestate.
func (u *User) Begin(principal, tool string, traces []map[string]string) *Call {
	c := &Call{u: u, ctx: context.Background()}
	for _, named := range traces {
		next := u.t.w3c.Extract(c.ctx, propagation.MapCarrier(named)) // ignores an invalid traceparent
		if trace.SpanContextFromContext(next).TraceID() != trace.SpanContextFromContext(c.ctx).TraceID() {
			c.ctx = next
		}
	}
	name := "tools/call"
	attributes := []attribute.KeyValue{label("mcp.method.name", name), label("network.transport", "tcp")}
	if tool = knownTool(tool); tool != "" {
		name += " " + tool
		attributes = append(attributes, label("gen_ai.tool.name", tool))
	}
	if principal != "" {
		attributes = append(attributes, label("codex_mcp.principal", principal))
	}
	c.ctx, c.span = u.t.tracer.Start(c.ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attributes...))
	return c
}

// End records the end of the call.
func (c *Call) End(err error) {
	if err != nil {
		c.span.SetStatus(codes.Error, "") // no text: the error may quote the client
	}
	c.span.End()
}

// knownTool returns name if the server has such a tool, otherwise "". So a span never has a
// text that a client made up.
func knownTool(name string) string {
	switch name {
	case "codex", "codex-reply", "codex-wait", "codex-show", "codex-review", "codex-list", "codex-interrupt", "codex-models":
		return name
	}
	return ""
}
