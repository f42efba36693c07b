package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// exporter sends spans by OTLP over HTTP.
type exporter struct {
	target *target
	client *http.Client
	log    *slog.Logger
}

// pauses are the delays before each attempt.
var pauses = []time.Duration{0, time.Second, 4 * time.Second}

// ExportSpans implements [sdktrace.SpanExporter]. It logs a failure, drops the spans and
// returns nil.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	body, err := encode(spans)
	if err != nil {
		e.log.Warn("cannot encode traces", "spans", len(spans), "error", err)
		return nil
	}
	for _, pause := range pauses {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if ctx.Err() != nil {
			break
		}
		var retry bool
		if retry, err = e.post(ctx, body); !retry {
			break
		}
	}
	if err != nil {
		e.log.Warn("cannot send traces", "spans", len(spans), "error", err)
	}
	return nil
}

// post sends a batch. retry reports whether another attempt may succeed.
func (e *exporter) post(ctx context.Context, body []byte) (retry bool, err error) {
	if e.target.gzip {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(body) // cannot fail: it writes to memory
		_ = z.Close()
		body = b.Bytes()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.target.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	for name, value := range e.target.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	if e.target.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := e.client.Do(r)
	if err != nil {
		return true, err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 1<<16) // so that the connection can be reused
	switch {
	case answer.StatusCode < http.StatusMultipleChoices:
		return false, nil
	case answer.StatusCode == http.StatusTooManyRequests, answer.StatusCode >= http.StatusBadGateway:
		retry = true
	}
	return retry, fmt.Errorf("the collector answered %s", answer.Status)
}

// Shutdown implements [sdktrace.SpanExporter].
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}
