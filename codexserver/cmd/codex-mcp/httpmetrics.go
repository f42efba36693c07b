package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/telemetry"
)

// observe makes the metrics and traces of a server, and returns what ends them. It runs
// before the engine is chosen: no command gets the variables that hold a secret of the
// collector's.
func (c *configuration) observe() (end func(), err error) {
	end, err = c.observeFront()
	if err = errors.Join(err, forgetCollector()); err != nil {
		return nil, err
	}
	return end, nil
}

// observeFront is observe for the process before the workers of several users, which get
// the collector's variables from it. It runs no command.
func (c *configuration) observeFront() (end func(), err error) {
	t, err := telemetry.New(telemetry.Options{Version: version(), Getenv: os.Getenv, Logger: c.log})
	if err != nil {
		return nil, err
	}
	c.telemetry = t
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), sendTimeout)
		defer cancel()
		if err := t.Close(ctx); err != nil {
			c.log.Warn("the last traces", "error", err)
		}
	}, nil
}

// forgetCollector removes the collector's secrets from the environment.
func forgetCollector() (err error) {
	for _, name := range telemetry.SecretVariables {
		err = errors.Join(err, os.Unsetenv(name))
	}
	return err
}

// sendTimeout bounds how long the end waits for the last traces to be sent.
const sendTimeout = 5 * time.Second

// serveMetrics serves metrics at http.metrics, if that is set, until close is called.
func (c *configuration) serveMetrics(stderr io.Writer) (closes func() error, err error) {
	if c.settings.HTTP.Metrics == "" {
		return func() error { return nil }, nil
	}
	l, err := net.Listen("tcp", c.settings.HTTP.Metrics)
	if err != nil {
		return nil, fmt.Errorf("http.metrics: %w", err)
	}
	m := http.NewServeMux()
	m.Handle("GET /metrics", cmp.Or[http.Handler](c.metrics, c.telemetry))
	server := &http.Server{
		Handler: onlyLoopbackHost(m), ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: headerTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(c.log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(limitListener(l, maxReaders)) }()
	fmt.Fprintf(stderr, "codex-mcp: serving metrics at http://%s/metrics\n", l.Addr())
	return func() error {
		err := server.Close()
		if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
		return err
	}, nil
}

// maxReaders is how many connections read metrics at a time.
const maxReaders = 16

// onlyLoopbackHost refuses what a web page could have sent by DNS rebinding.
func onlyLoopbackHost(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host, _, err := net.SplitHostPort(r.Host); err != nil && !isLoopback(r.Host) || err == nil && !isLoopback(host) {
			http.Error(w, "this server is not known by that Host", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
