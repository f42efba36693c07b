package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

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

// Telemetry records metrics and traces of a gateway. It is safe for concurrent use.
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

// Traces reports whether traces are sent.
func (t *Telemetry) Traces() bool { return t.spans != nil }

// User records what the worker of one user does. It is safe for concurrent use.
type User struct {
	t    *Telemetry
	name string
}

// User returns the recorder for a user, or with "" for what belongs to no worker.
func (t *Telemetry) User(name string) *User { return &User{t, name} }
