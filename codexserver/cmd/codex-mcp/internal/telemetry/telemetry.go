package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/streamable"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Options configure a [Telemetry]. All are required.
type Options struct {
	// Version is the version of the program.
	Version string
	// Getenv reads the environment variables of OpenTelemetry.
	Getenv func(string) string
	// Logger receives a warning for traces that cannot be sent.
	Logger *slog.Logger
}

// Telemetry records metrics and traces of a server. It is safe for concurrent use.
type Telemetry struct {
	meters *metric.MeterProvider
	reader *metric.ManualReader
	gauges gauges
	instruments

	spans  *sdktrace.TracerProvider // nil without an endpoint
	tracer trace.Tracer
	w3c    propagation.TraceContext
}

const scope = "github.com/codexmcp/codexmcp"

// New returns a Telemetry, which the caller must close. It sends traces if an environment
// variable names an endpoint.
func New(o Options) (*Telemetry, error) {
	reader := metric.NewManualReader()
	t := &Telemetry{reader: reader, meters: metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(resource.Empty()), metric.WithExemplarFilter(exemplar.AlwaysOffFilter))}
	err := t.instruments.register(t.meters.Meter(scope), &t.gauges, o.Version)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	t.tracer = noop.NewTracerProvider().Tracer(scope)
	target, err := readTarget(o.Getenv)
	if err != nil || target == nil {
		return t, err
	}
	about, err := newResource(o.Version)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	t.spans = sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&exporter{target: target, client: target.client(), log: o.Logger}),
		sdktrace.WithResource(about),
	)
	t.tracer = t.spans.Tracer(scope)
	return t, nil
}

// Close sends the remaining spans, until ctx ends.
func (t *Telemetry) Close(ctx context.Context) error {
	err := t.meters.Shutdown(ctx)
	if t.spans != nil {
		err = errors.Join(err, t.spans.Shutdown(ctx))
	}
	return err
}

// Handler returns a handler that reads the headers traceparent and tracestate into the
// context of each request and calls next.
func (t *Telemetry) Handler(next http.Handler) http.Handler {
	if t.spans == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(t.w3c.Extract(r.Context(), propagation.HeaderCarrier(r.Header))))
	})
}

// Watch makes the gauges report the load of a handler.
func (t *Telemetry) Watch(h *streamable.Handler) {
	t.gauges.handler.Store(h)
	t.WatchDraining(func() bool { return h.Load().Draining })
}

// WatchDraining makes the gauge codex_mcp_draining report draining(). Use it in a process
// without a handler.
func (t *Telemetry) WatchDraining(draining func() bool) { t.gauges.draining.Store(&draining) }

var _ codexserver.Observer = (*Telemetry)(nil)
