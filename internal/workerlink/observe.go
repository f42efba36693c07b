package workerlink

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
)

// Observer reports what the server of a worker does to the gateway. The gateway always
// reads its reports, so that they do not delay the server. It is a [codexserver.Observer].
type Observer struct {
	link *Link
	last atomic.Uint64 // the number of the latest call, turn or question
}

var _ codexserver.Observer = (*Observer)(nil)

// Observer returns the observer of the link.
func (l *Link) Observer() *Observer { return &Observer{link: l} }

// send reports an observation. An error means that the gateway has ended.
func (o *Observer) send(one *Observation) { _ = o.link.Report(Status{Observed: one}) }

const (
	// maxWord bounds a name, in bytes.
	maxWord = 128
	// maxTrace bounds a header that names a trace, in bytes. The gateway reads no longer
	// line than 64 KiB.
	maxTrace = 4096
)

// traceKey is the context's key for the trace that the headers of a request name.
type traceKey struct{}

// Handler returns a handler that notes the trace of each request, and calls next.
func (o *Observer) Handler(next http.Handler) http.Handler {
	if !o.link.Settings.Traced {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if named := trace(r.Header.Get("Traceparent"), r.Header.Get("Tracestate")); named != nil {
			r = r.WithContext(context.WithValue(r.Context(), traceKey{}, named))
		}
		next.ServeHTTP(w, r)
	})
}

// trace returns a trace, or nil without one.
func trace(parent, state string) map[string]string {
	if parent == "" || len(parent) > maxTrace || len(state) > maxTrace {
		return nil
	}
	return map[string]string{"traceparent": oneLine(parent, maxTrace), "tracestate": oneLine(state, maxTrace)}
}

// Begin implements [codexserver.Observer]. It observes only tools/call, and the turns of such calls that
// continue: clients poll with the other methods.
func (o *Observer) Begin(ctx context.Context, r *codexserver.Request) codexserver.CallObserver {
	if r.Continues == "" && (r.RPC == nil || r.RPC.Method != mcptypes.ToolsCall.Name()) {
		return nil
	}
	one := &Observation{Kind: KindBegin, Call: o.last.Add(1)}
	switch {
	case !o.link.Settings.Traced:
	case r.RPC == nil:
		one.Tool = oneLine(r.Continues, maxWord)
	default:
		if named, ok := ctx.Value(traceKey{}).(map[string]string); ok {
			one.Traces = append(one.Traces, named)
		}
		tool, named := readParams(r.RPC)
		if one.Tool = oneLine(tool, maxWord); named != nil {
			one.Traces = append(one.Traces, named)
		}
	}
	o.send(one)
	return &call{o, one.Call}
}

// readParams returns the tool of a call and the trace in its _meta, or nil without one.
func readParams(r *jsonrpc.Request) (tool string, named map[string]string) {
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
	return p.Name, trace(p.Meta.Parent, p.Meta.State)
}

// call observes a tools/call. Its turns may end later.
type call struct {
	o  *Observer
	id uint64
}

// End implements [codexserver.CallObserver].
func (c *call) End(err error) {
	c.o.send(&Observation{Kind: KindEnd, Call: c.id, Failed: err != nil})
}

// Turn implements [codexserver.CallObserver].
func (c *call) Turn(thread string, used protocol.TokenUsage) codexserver.TurnObserver {
	t := &turn{o: c.o, id: c.o.last.Add(1), questions: map[*approval.Request]uint64{}}
	c.o.send(&Observation{Kind: KindTurnBegin, Call: c.id, Turn: t.id, Thread: oneLine(thread, maxWord), Used: used})
	return t
}

// turn observes a turn.
type turn struct {
	o  *Observer
	id uint64

	mu        sync.Mutex
	questions map[*approval.Request]uint64 // the open ones
}

// Event implements [codexserver.TurnObserver].
func (t *turn) Event(m protocol.EventMsg) {
	if s, needed := StepOf(m); needed && (t.o.link.Settings.Measured || s.What.effect()) {
		t.send(&Observation{Kind: KindStep, Step: s})
	}
}

// send reports an observation of the turn.
func (t *turn) send(one *Observation) {
	one.Turn = t.id
	t.o.send(one)
}

// Asked implements [codexserver.TurnObserver].
func (t *turn) Asked(r *approval.Request) {
	id := t.o.last.Add(1)
	t.mu.Lock()
	t.questions[r] = id
	t.mu.Unlock()
	asks := "other"
	switch r.Event.(type) {
	case protocol.ExecApprovalRequest:
		asks = "command"
	case protocol.PatchApprovalRequest:
		asks = "patch"
	}
	t.send(&Observation{Kind: KindAsked, Question: id, Asks: asks})
}

// Decided implements [codexserver.TurnObserver].
func (t *turn) Decided(r *approval.Request, d approval.Decision) {
	t.mu.Lock()
	id := t.questions[r]
	delete(t.questions, r)
	t.mu.Unlock()
	t.send(&Observation{Kind: KindDecided, Question: id, Decision: string(d.Decision), By: string(d.By)})
}

// End implements [codexserver.TurnObserver].
func (t *turn) End(err error) {
	var abort *engine.AbortError
	aborted := errors.As(err, &abort)
	t.send(&Observation{Kind: KindTurnEnd, Aborted: aborted, Failed: err != nil && !aborted})
}
