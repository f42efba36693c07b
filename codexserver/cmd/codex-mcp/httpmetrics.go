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

// observe starts the metrics and traces of a process that runs commands, and returns the
// function that ends them. Call it before the engine is chosen: it removes the collector's
// secrets from the environment, so that commands do not get them.
func (c *configuration) observe() (end func(), err error) {
	end, err = c.observeFront()
	if err = errors.Join(err, unsetCollectorSecrets()); err != nil {
		return nil, err
	}
	return end, nil
}

// observeFront is observe for the process in front of the workers. It keeps the collector's
// secrets, because the workers inherit them and it runs no commands itself.
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
			c.log.Warn("cannot send the last traces", "error", err)
		}
	}, nil
}

// unsetCollectorSecrets removes the collector's secrets from the environment.
func unsetCollectorSecrets() (err error) {
	for _, name := range telemetry.SecretVariables {
		err = errors.Join(err, os.Unsetenv(name))
	}
	return err
}

// sendTimeout bounds how long the program sends its last traces before it exits.
const sendTimeout = 5 * time.Second

// serveMetrics serves the metrics at http.metrics until stop is called. If http.metrics is
// not set, it does nothing.
func (c *configuration) serveMetrics(stderr io.Writer) (stop func() error, err error) {
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

// maxReaders bounds the open connections to the metrics. Further ones wait.
const maxReaders = 16

// onlyLoopbackHost refuses a request unless its Host is this machine. Otherwise a web page
// could read the metrics by DNS rebinding.
func onlyLoopbackHost(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host, _, err := net.SplitHostPort(r.Host); err != nil && !isLoopback(r.Host) || err == nil && !isLoopback(host) {
			http.Error(w, "the Host is not a name of this server", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
