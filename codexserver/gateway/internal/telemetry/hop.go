package telemetry

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The headers that name the trace of a request, in the spelling of [http.Header].
const (
	parentHeader = "Traceparent"
	stateHeader  = "Tracestate"
	// maxTrace bounds each of them, in bytes. The worker has the same bound.
	maxTrace = 4096
)

// Hop is the part of a tools/call at a front or a node. nil records nothing.
type Hop struct{ span trace.Span }

// Front begins the span of a tools/call at a front. The call belongs to the trace that its _meta
// names, or else to that of its headers; what is invalid is ignored. The headers then name the
// span, for the node. r needs GetBody. Front returns nil if r is no tools/call, whose headers
// then name no trace, or if traces are not sent.
func (t *Telemetry) Front(r *http.Request, principal string) *Hop {
	if t == nil || t.spans == nil {
		return nil
	}
	ctx := t.named(r.Header)
	r.Header.Del(parentHeader)
	r.Header.Del(stateHeader)
	meta, ok := readCall(r)
	if !ok {
		return nil
	}
	return t.hop(t.extract(ctx, meta.Parent, meta.State), r.Header, "front", label("codex_mcp.principal", principal))
}

// Node begins the span of a tools/call at a node, as the child of the span that the headers name.
// They then name the new one, for the worker. Node returns nil if they name none.
func (t *Telemetry) Node(h http.Header, node, principal string) *Hop {
	if t == nil || t.spans == nil {
		return nil
	}
	ctx := t.named(h)
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	return t.hop(ctx, h, "node", label("codex_mcp.principal", principal), label("codex_mcp.node", node))
}

// hop begins a span, which the headers then name.
func (t *Telemetry) hop(ctx context.Context, h http.Header, name string, attributes ...attribute.KeyValue) *Hop {
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attributes...))
	h.Del(stateHeader)
	t.w3c.Inject(ctx, propagation.HeaderCarrier(h))
	return &Hop{span}
}

// End ends the span with the status of the answer, or 0 if there was none.
func (h *Hop) End(status int) {
	if h == nil {
		return
	}
	if status > 0 {
		h.span.SetAttributes(attribute.Int("http.response.status_code", status))
	}
	if status == 0 || status >= 500 {
		h.span.SetStatus(codes.Error, "")
	}
	h.span.End()
}

// named returns a context with the trace that headers name, if there is exactly one.
func (t *Telemetry) named(h http.Header) context.Context {
	if len(h[parentHeader]) != 1 {
		return context.Background()
	}
	return t.extract(context.Background(), h.Get(parentHeader), h.Get(stateHeader))
}

// extract returns ctx with a trace, or ctx if the trace is not valid.
func (t *Telemetry) extract(ctx context.Context, parent, state string) context.Context {
	if len(parent) > maxTrace || len(state) > maxTrace {
		return ctx
	}
	return t.w3c.Extract(ctx, propagation.MapCarrier{"traceparent": parent, "tracestate": state})
}

// callMeta is the trace in the _meta of a call.
type callMeta struct {
	Parent string `json:"traceparent"`
	State  string `json:"tracestate"`
}

// callMethod is the method that traces are about. Clients poll with the others.
const callMethod = "tools/call"

// readCall reads the body of a request. ok is false if it is not a tools/call.
func readCall(r *http.Request) (meta callMeta, ok bool) {
	if m := r.Header.Get("Mcp-Method"); r.Method != http.MethodPost || r.GetBody == nil || m != "" && m != callMethod {
		return meta, false
	}
	body, err := r.GetBody()
	if err != nil {
		return meta, false
	}
	defer body.Close()
	var message struct {
		Method string `json:"method"`
		Params struct {
			Meta jsontext.Value `json:"_meta"`
		} `json:"params"`
	}
	if json.UnmarshalRead(body, &message) != nil || message.Method != callMethod {
		return meta, false // the worker answers with an error
	}
	if json.Unmarshal(message.Params.Meta, &meta) != nil {
		return callMeta{}, true
	}
	return meta, true
}
