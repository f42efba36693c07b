package telemetry

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strconv"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/workerlink"
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
type gauges struct{ pool atomic.Pointer[Pool] }

// Pool has the workers.
type Pool interface {
	// Loads returns the loads of the running workers, by user. It leaves out a worker
	// that does not answer in time.
	Loads(context.Context) map[string]workerlink.Load
	// Draining reports whether nothing new may begin.
	Draining() bool
}

// register creates the instruments and the gauges. Prometheus shows the names as they are.
func (i *instruments) register(m metric.Meter, t *Telemetry, version string) error {
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
	loaded := func(name, words string) metric.Int64ObservableGauge {
		g, err := m.Int64ObservableGauge(name, metric.WithDescription(words))
		keep(err)
		return g
	}
	i.requests = counter("codex_mcp_http_requests_total", "HTTP requests that have been answered, by method of MCP and status.")
	i.running = sum("codex_mcp_turns_running", "Turns that run now.")
	i.turns = seconds("codex_mcp_turn_duration_seconds", "How long turns took, by outcome.", 1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600)
	i.open = sum("codex_mcp_questions_open", "Questions that wait for a decision.")
	i.questions = counter("codex_mcp_questions_total", "Questions that were decided, by decision and by who decided.")
	i.tokens = counter("codex_mcp_tokens_total", "Tokens, as the provider counts them. Cached ones are input too, reasoning is output too.")
	i.commands = counter("codex_mcp_commands_total", "Commands that have ended, by outcome.")
	i.modelRequests = seconds("codex_mcp_model_request_duration_seconds", "How long the model took to answer, by outcome.", 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300)
	requests := loaded("codex_mcp_http_requests_open", "HTTP requests that are not answered to their end, streams among them.")
	sessions := loaded("codex_mcp_sessions", "Sessions of clients with a handshake.")
	draining := loaded("codex_mcp_draining", "1 when nothing new may begin.")
	_, err := m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		pool := t.gauges.pool.Load()
		if pool == nil {
			return nil
		}
		o.ObserveInt64(draining, number01((*pool).Draining()))
		var all workerlink.Load
		for name, l := range (*pool).Loads(ctx) {
			all.Requests, all.Sessions = all.Requests+l.Requests, all.Sessions+l.Sessions
			if t.users {
				user := t.User(name).labels()
				o.ObserveInt64(requests, int64(l.Requests), user)
				o.ObserveInt64(sessions, int64(l.Sessions), user)
				o.ObserveInt64(draining, number01(l.Draining), user)
			}
		}
		if !t.users {
			o.ObserveInt64(requests, int64(all.Requests))
			o.ObserveInt64(sessions, int64(all.Sessions))
		}
		return nil
	}, requests, sessions, draining)
	keep(err)
	build, err := m.Int64Gauge("codex_mcp_build_info", metric.WithDescription("Always 1."))
	keep(err)
	build.Record(context.Background(), 1, metric.WithAttributes(label("version", version), label("go", runtime.Version())))
	return errors.Join(errs...)
}

// Watch makes the gauges report the loads of a pool.
func (t *Telemetry) Watch(p Pool) { t.gauges.pool.Store(&p) }

// number01 returns 1 for true.
func number01(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

func label(name, value string) attribute.KeyValue { return attribute.String(name, value) }

// principalLabel is the label with the user of a worker.
const principalLabel = "principal"

// labels returns labels, and that of the user if users have series of their own.
func (u *User) labels(labels ...attribute.KeyValue) metric.MeasurementOption {
	if u.name != "" && u.t.users {
		labels = append(labels, label(principalLabel, u.name))
	}
	return metric.WithAttributes(labels...)
}

// count adds one to a counter.
func (u *User) count(c metric.Int64Counter, labels ...attribute.KeyValue) {
	c.Add(context.Background(), 1, u.labels(labels...))
}

// Report counts an HTTP request.
func (u *User) Report(method string, status int) {
	u.count(u.t.requests, label("method", methodLabel(method)), label("status", statusLabel(status)))
}

// The labels below have few values, because a worker that a command has taken over could
// make up more.

// statusLabel returns the label of an HTTP status.
func statusLabel(status int) string {
	if http.StatusText(status) == "" {
		return other
	}
	return strconv.Itoa(status)
}

func decisionLabel(d elicit.Decision) string {
	switch d {
	case elicit.Approved, elicit.ApprovedForSession, elicit.ApprovedAlways, elicit.Denied, elicit.Abort:
		return string(d)
	}
	return other
}

func byLabel(d approval.Decider) string {
	switch d {
	case approval.ByClient, approval.ByPage, approval.ByRule, approval.ByPolicy, approval.ByNobody:
		return string(d)
	}
	return other
}

// other is the label of all unknown values.
const other = "other"

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
	return other
}
