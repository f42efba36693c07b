package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/workerlink"
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

// maxOpen limits the open commands and the open questions of a turn that are recorded, each.
const maxOpen = 256

// Turn records one turn that a worker reports. A worker that a command has taken over may report
// anything: what does not fit together is ignored, and what is remembered is bounded. Only one
// goroutine may use it.
type Turn struct {
	u     *User
	ctx   context.Context
	span  trace.Span
	began time.Time

	model     modelClock
	used      protocol.TokenUsage
	calls     map[string]trace.Span // by id; nil for those of tools and patches
	questions map[uint64]trace.Span
}

// Turn records the start of a turn of a thread, which has used tokens before.
func (c *Call) Turn(thread string, used protocol.TokenUsage) *Turn {
	o := &Turn{u: c.u, began: time.Now(), used: used, calls: map[string]trace.Span{}, questions: map[uint64]trace.Span{}}
	o.ctx, o.span = c.u.t.tracer.Start(c.ctx, "turn", trace.WithAttributes(label("codex_mcp.thread", thread)))
	c.u.t.running.Add(c.ctx, 1, c.u.labels())
	return o
}

// Step records what happens.
func (o *Turn) Step(s workerlink.Step) {
	switch s.What {
	case workerlink.Started:
		o.model.begin()
	case workerlink.Counted:
		o.count(s.Used)
	case workerlink.Retried:
		o.answered(failed, false)
		o.model.begin()
	case workerlink.Failed:
		o.answered(failed, false)
	case workerlink.Aborted:
		o.answered(aborted, false)
	case workerlink.Completed:
		o.answered(completed, true) // without effect, unless the provider does not count tokens
	case workerlink.Runs, workerlink.Calls:
		if len(o.calls) == maxOpen {
			return
		}
		o.model.beginCall(s.Call)
		o.calls[s.Call] = nil
		if s.What == workerlink.Runs {
			_, o.calls[s.Call] = o.u.t.tracer.Start(o.ctx, "command")
		}
	case workerlink.Ran, workerlink.Called:
		o.model.endCall(s.Call)
		span := o.calls[s.Call]
		delete(o.calls, s.Call)
		if s.What == workerlink.Ran {
			o.commandEnded(span, s.Exit)
		}
	}
}

// count records the tokens of a request to the model. A count without new usage reports a
// rate limit, and is ignored.
func (o *Turn) count(now protocol.TokenUsage) {
	before := o.used
	if now == before {
		return
	}
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
// turn is over.
func (o *Turn) answered(outcome string, done bool, attributes ...attribute.KeyValue) {
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

// commandEnded records the end of a command. Its span is nil if its begin was not recorded.
func (o *Turn) commandEnded(span trace.Span, exit int) {
	outcome := completed
	if exit != 0 {
		outcome = failed
	}
	o.u.count(o.u.t.commands, label("outcome", outcome))
	if span != nil {
		span.SetAttributes(attribute.Int("process.exit.code", exit))
		span.End()
	}
}

// Asked records a question about a "command", a "patch" or something else.
func (o *Turn) Asked(id uint64, about string) {
	if len(o.questions) == maxOpen || o.questions[id] != nil {
		return
	}
	if about != "command" && about != "patch" {
		about = "other"
	}
	o.u.t.open.Add(o.ctx, 1, o.u.labels())
	o.model.beginCall(id)
	_, o.questions[id] = o.u.t.tracer.Start(o.ctx, "question", trace.WithAttributes(label("codex_mcp.question.kind", about)))
}

// Decided records the decision about a question.
func (o *Turn) Decided(id uint64, d elicit.Decision, decider approval.Decider) {
	span, ok := o.questions[id]
	if !ok {
		return
	}
	decision, by := label("decision", decisionLabel(d)), label("by", byLabel(decider))
	o.u.count(o.u.t.questions, decision, by)
	o.model.endCall(id)
	span.SetAttributes(label("codex_mcp.question.decision", decision.Value.AsString()), label("codex_mcp.question.by", by.Value.AsString()))
	o.closed(id, span)
}

// closed ends an open question.
func (o *Turn) closed(id uint64, span trace.Span) {
	delete(o.questions, id)
	o.u.t.open.Add(o.ctx, -1, o.u.labels())
	span.End()
}

// End records the end of the turn.
func (o *Turn) End(err error) {
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
	o.answered(outcome, true)
	for _, span := range o.calls { // those without an end
		if span != nil {
			span.End()
		}
	}
	clear(o.calls)
	for id, span := range o.questions { // those of a worker that was killed
		o.closed(id, span)
	}
	o.span.SetAttributes(label("codex_mcp.outcome", outcome))
	o.span.End()
}
