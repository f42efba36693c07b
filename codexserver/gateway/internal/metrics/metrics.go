// Package metrics counts what a gateway does, for Prometheus. No label contains a user, a prompt, a command or a path.
package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Figures are what is true at a moment.
type Figures struct {
	// Requests, Sessions and Turns are those of all workers that are open.
	Requests, Sessions, Turns int
	// Workers and Leases are how many this process has.
	Workers, Leases int
	// Draining means that the process ends, or takes no more users.
	Draining bool
}

// Metrics are the metrics of a process. It is safe for concurrent use.
type Metrics struct {
	requests              *prometheus.CounterVec
	started, failed, lost prometheus.Counter
	registry              *prometheus.Registry
}

// New returns metrics of which nothing has been counted.
func New() *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "codex_mcp_" + name, Help: help})
	}
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "codex_mcp_http_requests_total",
			Help: "HTTP requests that a front has answered, by status."}, []string{"status"}),
		started:  counter("worker_starts_total", "Workers that have started."),
		failed:   counter("worker_failures_total", "Workers that did not start."),
		lost:     counter("leases_lost_total", "Users whose worker was killed because the node had lost their lease."),
		registry: prometheus.NewRegistry(),
	}
	m.registry.MustRegister(m.requests, m.started, m.failed, m.lost, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Answered counts a request with the status of its answer. 0 is one whose client has left.
func (m *Metrics) Answered(status int) { m.requests.WithLabelValues(label(status)).Inc() }

// label returns the label of a status. A worker that a command has taken over could make up more than these.
func label(status int) string {
	if http.StatusText(status) == "" {
		return "other"
	}
	return strconv.Itoa(status)
}

// Started counts the start of a worker, and its error.
func (m *Metrics) Started(err error) {
	if err != nil {
		m.failed.Inc()
		return
	}
	m.started.Inc()
}

// Lost counts a user whose lease is lost.
func (m *Metrics) Lost() { m.lost.Inc() }

// Watch makes the metrics show figures. It is for one call.
func (m *Metrics) Watch(figures func(context.Context) Figures) {
	m.registry.MustRegister(watched(figures))
}

// watched is a [prometheus.Collector] of figures.
type watched func(context.Context) Figures

// Describe implements [prometheus.Collector].
func (w watched) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(w, to) }

// Collect implements [prometheus.Collector].
func (w watched) Collect(to chan<- prometheus.Metric) {
	f := w(context.Background())
	for _, figure := range []struct {
		name, help string
		value      int
	}{
		{"http_requests_open", "HTTP requests that are not answered to their end, streams among them.", f.Requests},
		{"sessions", "Sessions of clients with a handshake.", f.Sessions},
		{"turns_running", "Turns that run now.", f.Turns},
		{"workers", "Workers that run now.", f.Workers},
		{"leases", "Users whose lease this node has.", f.Leases},
		{"draining", "1 when the process takes no more users.", map[bool]int{true: 1}[f.Draining]},
	} {
		about := prometheus.NewDesc("codex_mcp_"+figure.name, figure.help, nil, nil)
		to <- prometheus.MustNewConstMetric(about, prometheus.GaugeValue, float64(figure.value))
	}
}

// Handler serves the metrics. log receives what goes wrong.
func (m *Metrics) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry,
		promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)})
}
