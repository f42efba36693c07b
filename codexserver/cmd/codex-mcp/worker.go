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
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/internal/httpserve"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// work runs this program as the worker of one user of codex-mcp-gateway.
func work(ctx context.Context, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	link, err := worker.Connect()
	if err != nil {
		return err
	}
	defer link.Close()
	err = workFor(ctx, link, stderr)
	if err != nil && link.Fail(err) {
		return status(1) // the gateway logs why a worker does not start
	}
	return err
}

// workFor starts the server for the user of a link, and serves until the link ends.
func workFor(ctx context.Context, link *worker.Link, stderr io.Writer) error {
	if err := link.Check(); err != nil {
		return err
	}
	settings := &link.Settings
	o := &options{
		name: "codex-mcp", overrides: settings.Overrides, engine: settings.Engine, codex: settings.Codex,
		strict: settings.Strict, log: settings.Log, logFormat: settings.LogFormat,
		folders: settings.Folders, turns: settings.Turns,
	}
	if err := worker.Take(settings.Home, settings.Files); err != nil {
		return fmt.Errorf("the configuration: %w", err)
	}
	c, err := configure(o, os.Getenv, o.logger(stderr).With("principal", settings.Principal))
	if err != nil {
		return err
	}
	c.guarded = nil // the gateway writes the log
	c.record = link.Record
	// Before anything reads the home.
	mirror, err := worker.Open(ctx, c.home, link.Store, &worker.Options{Logger: c.log})
	if err != nil {
		return err
	}
	defer mirror.Close()
	c.store = mirror
	a := &c.settings.Approvals // of which the gateway has one log for all, and one port
	a.Log, a.PagePort, a.PageOrigin = new(""), 0, ""
	c.settings.LockedArguments, c.settings.Tasks.Limit = settings.Locked, settings.Tasks
	c.warn(o, stderr)
	turns := &worker.Work{}
	c.observer = turns
	requests := o.logger(stderr) // without principal: each line names its own
	return c.withServer(ctx, o, func(s *codexserver.Server, _ *choice) error {
		return c.serveLink(ctx, s, link, mirror, turns, requests)
	})
}

// serveLink serves the requests of the user until the link or ctx ends.
// It logs each request to requests.
func (c *configuration) serveLink(
	ctx context.Context, s *codexserver.Server, link *worker.Link, mirror *worker.Mirror, turns *worker.Work,
	requests *slog.Logger,
) error {
	open := func(ctx context.Context, name string) mcphttp.Service {
		return s.Principal(ctx, name) // Authenticate accepts no other principal
	}
	handler, err := mcphttp.New(open, &mcphttp.Options{
		Authenticate: link.Authenticate, Challenge: challenge, Metadata: link.Settings.Metadata, Logger: requests,
		Principals: 1,
	})
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: httpserve.HeaderTimeout, MaxHeaderBytes: 2 * httpserve.MaxHeader,
		ErrorLog: slog.NewLogLogger(c.log.Handler(), slog.LevelDebug),
	}
	serving := make(chan error, 1)
	go func() { serving <- server.Serve(link.Listener) }()
	link.Ready(func() worker.Load { return turns.Load(handler.Load) })
	select {
	case err = <-serving:
	case <-link.Stop:
	case <-link.Store.Ended(): // the gateway has ended: nothing of the end is written
	case <-mirror.Fenced(): // another worker serves the user
		err = worker.ErrFenced
	case <-ctx.Done():
	}
	err = errors.Join(err, handler.Close(), server.Close())
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}
