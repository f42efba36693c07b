package telemetry

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/streamable"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// instruments are the metrics that events change. Every label has a small set of values.
type instruments struct {
	requests      metric.Int64Counter
	running       metric.Int64UpDownCounter
	turns         metric.Float64Histogram
	open          metric.Int64UpDownCounter
	questions     metric.Int64Counter
	tokens        metric.Int64Counter
	commands      metric.Int64Counter
	modelRequests metric.Float64Histogram
}

// gauges are the sources of metrics that are read on demand. A metric is left out while its
// source is nil.
type gauges struct {
	handler  atomic.Pointer[streamable.Handler]
	draining atomic.Pointer[func() bool]
}

// register creates the instruments and the gauges. Prometheus shows the names as they are.
func (i *instruments) register(m metric.Meter, g *gauges, version string) error {
	errs := make([]error, 0, 16)
	keep := func(err error) { errs = append(errs, err) }
	counter := func(name, words string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithDescription(words))
		keep(err)
		return c
	}
	sum := func(name, words string) metric.Int64UpDownCounter {
		c, err := m.Int64UpDownCounter(name, metric.WithDescription(words))
		keep(err)
		return c
	}
	seconds := func(name, words string, bounds ...float64) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithDescription(words), metric.WithExplicitBucketBoundaries(bounds...))
		keep(err)
		return h
	}
	gauge := func(name, words string, read func() int64, labels ...attribute.KeyValue) {
		_, err := m.Int64ObservableGauge(name, metric.WithDescription(words), metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(read(), metric.WithAttributes(labels...))
			return nil
		}))
		keep(err)
	}
	load := func(name, words string, read func(streamable.Load) int64) {
		_, err := m.Int64ObservableGauge(name, metric.WithDescription(words), metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			if h := g.handler.Load(); h != nil {
				o.Observe(read(h.Load()))
			}
			return nil
		}))
		keep(err)
	}
	i.requests = counter("codex_mcp_http_requests_total", "HTTP requests that have been answered, by method of MCP and status.")
	i.running = sum("codex_mcp_turns_running", "Turns that run now.")
	i.turns = seconds("codex_mcp_turn_duration_seconds", "How long turns took, by outcome.", 1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600)
	i.open = sum("codex_mcp_questions_open", "Questions that wait for a decision.")
	i.questions = counter("codex_mcp_questions_total", "Questions that were decided, by decision and by who decided.")
	i.tokens = counter("codex_mcp_tokens_total", "Tokens, as the provider counts them. Cached ones are input too, reasoning is output too.")
	i.commands = counter("codex_mcp_commands_total", "Commands that have ended, by outcome.")
	i.modelRequests = seconds("codex_mcp_model_request_duration_seconds", "How long the model took to answer, by outcome.", 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300)
	load("codex_mcp_http_requests_open", "HTTP requests that are not answered to their end, streams among them.", func(l streamable.Load) int64 { return int64(l.Requests) })
	load("codex_mcp_sessions", "Sessions of clients with a handshake.", func(l streamable.Load) int64 { return int64(l.Sessions) })
	_, err := m.Int64ObservableGauge("codex_mcp_draining", metric.WithDescription("1 when nothing new may begin."), metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
		draining := g.draining.Load()
		switch {
		case draining == nil:
		case (*draining)():
			o.Observe(1)
		default:
			o.Observe(0)
		}
		return nil
	}))
	keep(err)
	gauge("codex_mcp_build_info", "Always 1.", func() int64 { return 1 }, attribute.String("version", version), attribute.String("go", runtime.Version()))
	gauge("go_goroutines", "Goroutines that exist.", func() int64 { return int64(runtime.NumGoroutine()) })
	began := time.Now().Unix()
	gauge("process_start_time_seconds", "When the process began, in seconds since 1970.", func() int64 { return began })
	return errors.Join(errs...)
}

func label(name, value string) attribute.KeyValue { return attribute.String(name, value) }

// count adds one to a counter.
func count(c metric.Int64Counter, labels ...attribute.KeyValue) {
	c.Add(context.Background(), 1, metric.WithAttributes(labels...))
}

// Report counts an HTTP request.
func (t *Telemetry) Report(s streamable.Report) {
	count(t.requests, label("method", methodLabel(s.Method)), label("status", strconv.Itoa(s.Status)))
}

// methodLabel returns the label of a method. All unknown methods share one, so that clients
// cannot add labels.
func methodLabel(method string) string {
	switch method {
	case "":
		return "none" // the request was refused before its body was read
	case "GET", "DELETE", "response",
		mcptypes.Initialize.Name(), mcptypes.Ping.Name(), mcptypes.ToolsList.Name(), mcptypes.ToolsCall.Name(), mcptypes.LoggingSetLevel.Name(),
		mcptypes.ResourcesList.Name(), mcptypes.ResourcesTemplatesList.Name(), mcptypes.ResourcesRead.Name(),
		"notifications/initialized", "notifications/cancelled",
		modern.ServerDiscover.Name(), modern.SubscriptionsListen.Name(), modern.TasksGet.Name(), modern.TasksUpdate.Name(), modern.TasksCancel.Name():
		return method
	}
	return "other"
}
