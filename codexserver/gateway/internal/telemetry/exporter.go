package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// maxAnswer bounds the answer of a collector, which an error quotes, in bytes.
const maxAnswer = 4 << 10

// exporter sends spans by OTLP over HTTP, and logs what it cannot send.
type exporter struct {
	sdktrace.SpanExporter
	log *slog.Logger
}

func newExporter(ctx context.Context, t *target, log *slog.Logger) (*exporter, error) {
	compression := otlptracehttp.NoCompression
	if t.gzip {
		compression = otlptracehttp.GzipCompression
	}
	encoding := otlptracehttp.EncodingProtobuf
	if t.json {
		encoding = otlptracehttp.EncodingJSON
	}
	e, err := otlptrace.New(ctx, otlptracehttp.NewClient(
		otlptracehttp.WithEndpointURL(t.url), otlptracehttp.WithHeaders(t.headers), otlptracehttp.WithHTTPClient(t.client()),
		otlptracehttp.WithCompression(compression), otlptracehttp.WithEncoding(encoding), otlptracehttp.WithMaxResponseSize(maxAnswer),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: firstPause, MaxInterval: 4 * firstPause, MaxElapsedTime: t.timeout}),
	))
	return &exporter{e, log}, err
}

// ExportSpans implements [sdktrace.SpanExporter]. It logs a failure, drops the spans and
// returns nil, because the SDK would report it to the whole process.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := e.SpanExporter.ExportSpans(ctx, spans); err != nil {
		e.log.Warn("cannot send traces", "spans", len(spans), "error", err)
	}
	return nil
}
