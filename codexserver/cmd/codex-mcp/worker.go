package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/store"
	"github.com/codexmcp/codexmcp/internal/httpserve"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/workerlink"
)

// work runs this program as the worker of one user of codex-mcp-gateway, and returns its
// exit status.
func work(ctx context.Context, stderr io.Writer) int {
	defer surviveBrokenPipes()()
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	link, err := workerlink.Connect()
	if err != nil {
		return fail(stderr, err)
	}
	if err := workFor(ctx, link, stderr); err != nil {
		// The gateway logs the error. Without a gateway, print it to standard error.
		if link.ReportError(err) != nil {
			return fail(stderr, err)
		}
		return 1
	}
	return 0
}

// workFor starts the server for the user of a link, and serves until the link ends.
func workFor(ctx context.Context, link *workerlink.Link, stderr io.Writer) error {
	if err := link.Check(); err != nil {
		return err
	}
	settings := &link.Settings
	o := &options{
		name: "codex-mcp", overrides: settings.Overrides, engine: settings.Engine, codex: settings.Codex, strict: settings.Strict, log: settings.Log, logFormat: settings.LogFormat,
		folders: settings.Folders, turns: settings.Turns,
	}
	if err := config.Take(settings.Home, settings.Files); err != nil {
		return fmt.Errorf("the configuration: %w", err)
	}
	c, err := configure(o, os.Getenv, o.logger(stderr).With("principal", settings.Principal))
	if err != nil {
		return err
	}
	c.guarded = nil // the gateway writes the logs
	c.record, c.trace = link.RecordLog, link.TraceLog
	if link.Store != nil {
		defer link.Store.Close()
		// Before anything reads the home.
		if c.store, err = store.Open(ctx, c.home, link.Store, &store.Options{Logger: c.log}); err != nil {
			return err
		}
		defer c.store.Close()
	}
	c.withoutServer()
	c.settings.LockedArguments, c.settings.Tasks.Limit = settings.Locked, settings.Tasks
	c.warn(o, stderr)
	observer := link.Observer()
	c.observer = observer
	e, err := choose(ctx, o, c)
	if err != nil {
		return err
	}
	c.log.Info("engine", "name", e.name, "reason", e.reason)
	requests := o.logger(stderr) // without principal: each line names its own
	err = c.withServer(o, e, func(s *codexserver.Server) error { return c.serveLink(ctx, s, link, observer, requests) })
	return errors.Join(err, e.Close())
}

// withoutServer removes the settings that are the server's: it has one approval log and one port for all
// workers.
func (c *configuration) withoutServer() {
	a := &c.settings.Approvals
	a.Log, a.PagePort, a.PageOrigin = new(""), 0, ""
}

// serveLink serves the requests of the user until the link or ctx ends.
// It logs each request to requests.
func (c *configuration) serveLink(ctx context.Context, s *codexserver.Server, link *workerlink.Link, observer *workerlink.Observer, requests *slog.Logger) error {
	open := func(ctx context.Context, name string) mcphttp.Service {
		return s.Principal(ctx, name) // Authenticate accepts no other principal
	}
	handler, err := mcphttp.New(open, &mcphttp.Options{
		Authenticate: link.Authenticate, Challenge: challenge, Metadata: link.Settings.Metadata, Logger: requests,
		Principals:   1,
		MethodHeader: workerlink.MethodHeader,
	})
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: observer.Handler(handler), ReadHeaderTimeout: httpserve.HeaderTimeout, MaxHeaderBytes: 2 * httpserve.MaxHeader,
		ErrorLog: slog.NewLogLogger(c.log.Handler(), slog.LevelDebug),
	}
	serving := make(chan error, 1)
	go func() { serving <- server.Serve(link.Listener) }()
	ctx, cancel := context.WithCancel(ctx)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		select {
		case <-link.Drain:
			if handler.Drain(ctx) == nil {
				_ = link.Report(workerlink.Status{Drained: true}) // the gateway may be gone
			}
		case <-ctx.Done():
		}
	}()
	go func() {
		for {
			select {
			case <-link.AskLoad: // before it ends an idle worker, the gateway sends no request
				load := workerlink.Load(handler.Load())
				_ = link.Report(workerlink.Status{Load: &load}) // the gateway may be gone
			case <-ctx.Done():
				return
			}
		}
	}()
	err = link.Report(workerlink.Status{Ready: true})
	if err == nil {
		select {
		case err = <-serving:
		case <-link.Stop:
			link.Store.Probe(ctx) // if the node is dead, nothing of the end is written
		case <-c.store.Fenced(): // another worker serves the user
			err = store.ErrFenced
		case <-ctx.Done():
		}
	}
	cancel()
	err = errors.Join(err, handler.Close(), server.Close())
	<-drained
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}
