package telemetry

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// The outcomes of turns, of requests to the model and of commands.
const (
	completed = "completed"
	failed    = "failed"
	aborted   = "aborted"
)

// turn observes one turn.
type turn struct {
	u     *User
	ctx   context.Context
	span  trace.Span
	began time.Time

	mu        sync.Mutex
	model     modelClock
	used      protocol.TokenUsage
	commands  map[string]trace.Span
	questions map[*approval.Request]trace.Span
}

func newTurn(u *User, ctx context.Context, thread string, used protocol.TokenUsage) *turn {
	o := &turn{u: u, began: time.Now(), used: used, commands: map[string]trace.Span{}, questions: map[*approval.Request]trace.Span{}}
	o.ctx, o.span = u.t.tracer.Start(ctx, "turn", trace.WithAttributes(label("codex_mcp.thread", thread)))
	u.t.running.Add(ctx, 1, u.labels())
	return o
}

// Event implements [codexserver.TurnObserver].
func (o *turn) Event(m protocol.EventMsg) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch m := m.(type) {
	case protocol.TaskStarted:
		o.model.begin()
	case protocol.TokenCount:
		o.count(m.Info)
	case protocol.StreamError:
		o.answered(failed, false)
		o.model.begin()
	case protocol.Error:
		o.answered(failed, false)
	case protocol.TurnAborted:
		o.answered(aborted, false)
	case protocol.TaskComplete:
		o.answered(completed, true) // without effect, unless the provider does not count tokens
	case protocol.ExecCommandBegin:
		o.model.beginCall(m.CallID)
		_, o.commands[m.CallID] = o.u.t.tracer.Start(o.ctx, "command")
	case protocol.ExecCommandEnd:
		o.model.endCall(m.CallID)
		o.commandEnded(m)
	case protocol.MCPToolCallBegin:
		o.model.beginCall(m.CallID)
	case protocol.MCPToolCallEnd:
		o.model.endCall(m.CallID)
	case protocol.PatchApplyBegin:
		o.model.beginCall(m.CallID)
	case protocol.PatchApplyEnd:
		o.model.endCall(m.CallID)
	}
}

// count records the tokens of a request to the model. An event without new usage reports a
// rate limit, and is ignored.
func (o *turn) count(info *protocol.TokenUsageInfo) {
	if info == nil || info.TotalTokenUsage == o.used {
		return
	}
	before, now := o.used, info.TotalTokenUsage
	o.used = now
	add := func(kind string, n int64) {
		if n > 0 {
			o.u.t.tokens.Add(o.ctx, n, o.u.labels(label("kind", kind)))
		}
	}
	add("input", now.InputTokens-before.InputTokens)
	add("cached_input", now.CachedInputTokens-before.CachedInputTokens)
	add("output", now.OutputTokens-before.OutputTokens)
	add("reasoning", now.ReasoningOutputTokens-before.ReasoningOutputTokens)
	o.answered(completed, false, attribute.Int64("gen_ai.usage.input_tokens", now.InputTokens-before.InputTokens),
		attribute.Int64("gen_ai.usage.output_tokens", now.OutputTokens-before.OutputTokens))
	o.model.assume()
}

// answered records the end of a request to the model, if one is open. done means that the
// turn is over. The caller holds o.mu.
func (o *turn) answered(outcome string, done bool, attributes ...attribute.KeyValue) {
	since := o.model.end(done)
	if since.IsZero() {
		return
	}
	o.u.t.modelRequests.Record(o.ctx, time.Since(since).Seconds(), o.u.labels(label("outcome", outcome)))
	_, span := o.u.t.tracer.Start(o.ctx, "model_request", trace.WithTimestamp(since), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	if outcome == failed {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

func (o *turn) commandEnded(m protocol.ExecCommandEnd) {
	outcome := completed
	if m.ExitCode != 0 {
		outcome = failed
	}
	o.u.count(o.u.t.commands, label("outcome", outcome))
	if span, ok := o.commands[m.CallID]; ok {
		delete(o.commands, m.CallID)
		span.SetAttributes(attribute.Int("process.exit.code", m.ExitCode))
		span.End()
	}
}

// Asked implements [codexserver.TurnObserver].
func (o *turn) Asked(r *approval.Request) {
	kind := "other"
	switch r.Event.(type) {
	case protocol.ExecApprovalRequest:
		kind = "command"
	case protocol.PatchApprovalRequest:
		kind = "patch"
	}
	o.u.t.open.Add(o.ctx, 1, o.u.labels())
	o.mu.Lock()
	defer o.mu.Unlock()
	o.model.beginCall(r)
	_, o.questions[r] = o.u.t.tracer.Start(o.ctx, "question", trace.WithAttributes(label("codex_mcp.question.kind", kind)))
}

// Decided implements [codexserver.TurnObserver].
func (o *turn) Decided(r *approval.Request, d approval.Decision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	span, ok := o.questions[r]
	if !ok {
		return
	}
	decision, by := label("decision", decisionLabel(d.Decision)), label("by", byLabel(d.By))
	o.u.count(o.u.t.questions, decision, by)
	o.model.endCall(r)
	span.SetAttributes(label("codex_mcp.question.decision", decision.Value.AsString()), label("codex_mcp.question.by", by.Value.AsString()))
	o.closed(r, span)
}

// closed ends an open question. The caller holds o.mu.
func (o *turn) closed(r *approval.Request, span trace.Span) {
	delete(o.questions, r)
	o.u.t.open.Add(o.ctx, -1, o.u.labels())
	span.End()
}

// End implements [codexserver.TurnObserver].
func (o *turn) End(err error) {
	outcome := completed
	var abort *engine.AbortError
	switch {
	case errors.As(err, &abort):
		outcome = aborted
	case err != nil:
		outcome = failed
		o.span.SetStatus(codes.Error, "")
	}
	o.u.t.running.Add(o.ctx, -1, o.u.labels())
	o.u.t.turns.Record(o.ctx, time.Since(o.began).Seconds(), o.u.labels(label("outcome", outcome)))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answered(outcome, true)
	for _, span := range o.commands { // commands without an end event
		span.End()
	}
	clear(o.commands)
	for r, span := range o.questions { // those of a worker that was killed
		o.closed(r, span)
	}
	o.span.SetAttributes(label("codex_mcp.outcome", outcome))
	o.span.End()
}
