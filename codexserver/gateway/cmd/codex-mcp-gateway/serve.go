package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/metrics"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/workers"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/internal/httpserve"
	common "github.com/codexmcp/codexmcp/internal/program"
	"github.com/codexmcp/codexmcp/internal/webaddr"
)

// mcpPath is the path of the MCP endpoint.
const mcpPath = "/mcp"

// challenge begins the WWW-Authenticate of a refusal.
const challenge = `Bearer realm="codex-mcp"`

// serve serves the users of http.principals until a signal.
func (o *options) serve(ctx context.Context, stderr io.Writer) (err error) {
	log := common.Logger(stderr, o.logFormat, o.log)
	// A signal that comes before the end of the start waits for it, and of several one is enough.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	c, err := o.configure(log)
	if err != nil {
		return err
	}
	if strings.Contains(o.codex, "://") {
		return errors.New("--codex: users of the same app-server could see the work of others; name a program, or " +
			"start a server for each user")
	}
	if err := o.CheckHosts(c.http.Hosts); err != nil {
		return err
	}
	counted := metrics.New()
	s, err := o.newService(ctx, c, workers.Options{Metrics: counted, Stderr: stderr, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	closeMetrics, err := serveMetrics(c.http.Metrics, counted.Handler(log), stderr, log)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	defer o.reloadAt(hangups, s, stderr, log)()
	err = (&httpserve.Server{
		Flags: &o.Flags, Mux: s.mux, Backend: s, Check: s.broker.Check, Drain: c.http.Drain,
		Signals: common.EndingSignals(), Logger: log,
		Ready: func() {
			if s.front != nil {
				fmt.Fprintf(stderr, "%s: serving MCP at %s; number of users: %d\n", program, o.URL(mcpPath),
					len(c.http.Principals))
				return
			}
			fmt.Fprintf(stderr, "%s: running workers as the node %s; health at %s; number of users: %d\n", program,
				c.service.Node.Name, o.URL("/healthz"), len(c.http.Principals))
		},
	}).Serve(ctx)
	return errors.Join(err, closeMetrics())
}

// newPool returns the pool of workers. from has the fields that the configuration does not set.
func (o *options) newPool(c *configuration, from workers.Options) (*workers.Pool, error) {
	var err error
	if from.Program, err = o.workerProgram(); err != nil {
		return nil, err
	}
	from.Home, from.HTTP, from.Hidden, from.Record, from.Challenge = c.home, c.http, c.service.Files(),
		c.settings.Approvals.NamedLog(), challenge
	from.Settings = worker.Settings{
		Engine: o.engine, Codex: o.codex, Strict: o.strict, Log: o.log, LogFormat: o.logFormat,
		Locked: c.settings.LockedArguments, Overrides: c.workers,
		Metadata: access.MetadataURL(c.http),
	}
	pool, err := workers.New(from)
	if errors.Is(err, enclosure.ErrUnavailable) {
		return nil, fmt.Errorf("%w; start a server for each user, as an OS user or in a container of its own "+
			"(codexserver/gateway/README.md)", err)
	}
	return pool, err
}

// maxReaders bounds the open connections to the metrics. Further ones wait.
const maxReaders = 16

// serveMetrics serves the metrics at an address until stop is called. If the address is "",
// it does nothing.
func serveMetrics(
	address string, metrics http.Handler, stderr io.Writer, log *slog.Logger,
) (stop func() error, err error) {
	if address == "" {
		return func() error { return nil }, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("http.metrics: %w", err)
	}
	m := http.NewServeMux()
	m.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if !webaddr.Loopback((&url.URL{Host: r.Host}).Hostname()) { // else a web page could read them by DNS rebinding
			http.Error(w, "the Host is not a name of this server", http.StatusForbidden)
			return
		}
		metrics.ServeHTTP(w, r)
	})
	server := &http.Server{
		Handler: m, ReadHeaderTimeout: httpserve.HeaderTimeout, ReadTimeout: httpserve.HeaderTimeout,
		WriteTimeout: httpserve.HeaderTimeout, MaxHeaderBytes: httpserve.MaxHeader,
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
