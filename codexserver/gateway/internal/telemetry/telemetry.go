package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Options configure a [Telemetry]. All but Users are required.
type Options struct {
	// Version is the version of the program.
	Version string
	// Users gives each user series of its own in the metrics. Otherwise those of all users are one.
	Users bool
	// Getenv reads the environment variables of OpenTelemetry.
	Getenv func(string) string
	// Logger receives a warning for traces that cannot be sent.
	Logger *slog.Logger
}

// Telemetry records metrics and traces of a gateway. It is safe for concurrent use.
type Telemetry struct {
	meters  *metric.MeterProvider
	metrics http.Handler
	users   bool // have series of their own
	gauges  gauges
	instruments

	spans  *sdktrace.TracerProvider // nil without an endpoint
	tracer trace.Tracer
	w3c    propagation.TraceContext
}

const scope = "github.com/codexmcp/codexmcp"

// New returns a Telemetry, which the caller must close. It sends traces if an environment
// variable names an endpoint.
func New(o Options) (*Telemetry, error) {
	t := &Telemetry{users: o.Users}
	if err := t.measure(o); err != nil {
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
	sends, err := newExporter(context.Background(), target, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	t.spans = sdktrace.NewTracerProvider(sdktrace.WithBatcher(sends), sdktrace.WithResource(about))
	t.tracer = t.spans.Tracer(scope)
	return t, nil
}

// measure creates the metrics, and the handler that serves them with those of Go and of the process.
func (t *Telemetry) measure(o Options) error {
	registry := prometheus.NewRegistry()
	reader, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo(),
		otelprometheus.WithTranslationStrategy(otlptranslator.NoTranslation)) // the names are those of Prometheus
	if err != nil {
		return err
	}
	t.meters = metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(resource.Empty()), metric.WithExemplarFilter(exemplar.AlwaysOffFilter))
	t.metrics = promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn)})
	return errors.Join(
		registry.Register(collectors.NewGoCollector()), registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
		t.instruments.register(t.meters.Meter(scope), t, o.Version),
	)
}

// ServeHTTP answers with all metrics in a format of Prometheus.
func (t *Telemetry) ServeHTTP(w http.ResponseWriter, r *http.Request) { t.metrics.ServeHTTP(w, r) }

// Close sends the remaining spans, until ctx ends.
func (t *Telemetry) Close(ctx context.Context) error {
	err := t.meters.Shutdown(ctx)
	if t.spans != nil {
		err = errors.Join(err, t.spans.Shutdown(ctx))
	}
	return err
}

// Traces reports whether traces are sent.
func (t *Telemetry) Traces() bool { return t.spans != nil }

// User records what the worker of one user does. It is safe for concurrent use.
type User struct {
	t    *Telemetry
	name string
}

// User returns the recorder for a user, or with "" for what belongs to no worker.
func (t *Telemetry) User(name string) *User { return &User{t, name} }
