package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/telemetry"
	"github.com/codexmcp/codexmcp/internal/httpserve"
	"github.com/codexmcp/codexmcp/internal/webaddr"
)

// sendTimeout bounds how long the program sends its last traces before it exits.
const sendTimeout = 5 * time.Second

// closeTelemetry sends the last traces.
func closeTelemetry(t *telemetry.Telemetry, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), sendTimeout)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		log.Warn("cannot send the last traces", "error", err)
	}
}

// maxReaders bounds the open connections to the metrics. Further ones wait.
const maxReaders = 16

// serveMetrics serves the metrics at an address until stop is called. If the address is "",
// it does nothing.
func serveMetrics(address string, metrics http.Handler, stderr io.Writer, log *slog.Logger) (stop func() error, err error) {
	if address == "" {
		return func() error { return nil }, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("http.metrics: %w", err)
	}
	m := http.NewServeMux()
	m.Handle("GET /metrics", metrics)
	server := &http.Server{
		Handler: onlyLoopbackHost(m), ReadHeaderTimeout: httpserve.HeaderTimeout, ReadTimeout: httpserve.HeaderTimeout, WriteTimeout: httpserve.HeaderTimeout, MaxHeaderBytes: httpserve.MaxHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(httpserve.Limit(l, maxReaders)) }()
	fmt.Fprintf(stderr, "%s: serving metrics at http://%s/metrics\n", program, l.Addr())
	return func() error {
		err := server.Close()
		if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
		return err
	}, nil
}

// onlyLoopbackHost refuses a request unless its Host is this machine. Otherwise a web page
// could read the metrics by DNS rebinding.
func onlyLoopbackHost(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host, _, err := net.SplitHostPort(r.Host); err != nil && !webaddr.Loopback(r.Host) || err == nil && !webaddr.Loopback(host) {
			http.Error(w, "the Host is not a name of this server", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
