package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/access"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/workers"
	"github.com/codexmcp/codexmcp/codexserver/streamable"
)

// serveUsers serves the users of http.principals. Each has a worker.
func (c *configuration) serveUsers(ctx context.Context, o *options, stderr io.Writer) (err error) {
	switch {
	case o.http.showToken:
		return errors.New("--show-token: the server keeps only hashes of the tokens of http.principals; make a new token with --new-token")
	case o.folder != "":
		return errors.New("--cd: the users of http.principals work in their own folders; set folders in each table of http.principals")
	case isAddress(o.codex):
		return errors.New("--codex: users of the same app-server could see the work of others; name a program, or start a server for each user")
	}
	if err := c.checkHosts(o); err != nil {
		return err
	}
	end, err := c.observeFront()
	if err != nil {
		return err
	}
	defer end()
	c.warn(o, stderr)
	who, err := access.New(c.settings.HTTP, &access.Options{BehindProxy: o.http.proxy != "", Logger: c.log})
	if err != nil {
		return err
	}
	admission := c.admission()
	admission.Authenticate, admission.Metadata = who.Identify, access.MetadataURL(c.settings.HTTP)
	guard, err := streamable.NewGuard(&admission)
	if err != nil {
		return err
	}
	record, err := c.appendTo(nil, c.settings.ApprovalLog)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, record.Close()) }()
	traced, err := c.appendTo(nil, o.trace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, traced.Close()) }()
	hidden, err := o.hiddenFiles(record, traced)
	if err != nil {
		return err
	}
	settings := o.workerSettings(c.settings.LockedArguments)
	settings.Metadata = admission.Metadata
	pool, err := workers.New(workers.Options{
		Home: c.home, HTTP: c.settings.HTTP, Hidden: hidden, Settings: settings,
		Record: record.File, Trace: traced.File, Guard: guard, Challenge: admission.Challenge, Report: c.telemetry.Report, Stderr: stderr, Logger: c.log,
	})
	if errors.Is(err, workers.ErrEnclosure) {
		return fmt.Errorf("%w; start a server for each user, as an OS user or in a container of its own (docs/operating.md)", err)
	}
	if err != nil {
		return err
	}
	c.metrics = c.telemetry.MergedHandler(pool.Metrics)
	c.telemetry.WatchDraining(pool.Draining)
	m := http.NewServeMux()
	m.Handle(mcpPath, pool)
	m.Handle(mcpPath+"/{"+workers.UserValue+"}", pool)
	if err := access.Metadata(m, c.settings.HTTP, guard); err != nil {
		return errors.Join(err, pool.Close())
	}
	return c.listen(ctx, o, m, pool, fmt.Sprintf("number of users: %d", len(c.settings.HTTP.Principals)), stderr)
}

// hiddenFiles returns the absolute paths of the server's files that users must not see.
func (o *options) hiddenFiles(sinks ...sink) ([]string, error) {
	var paths []string
	for _, s := range sinks {
		if s.File != nil {
			paths = append(paths, s.Name())
		}
	}
	if o.http.key != "" {
		paths = append(paths, o.http.key)
	}
	for i, path := range paths {
		var err error
		if paths[i], err = filepath.Abs(path); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// workerSettings returns the settings from the command line that all workers share.
func (o *options) workerSettings(locked []string) workers.Settings {
	settings := workers.Settings{Engine: o.engine, Codex: o.codex, Strict: o.strict, Log: o.log, LogFormat: o.logFormat, Locked: locked}
	for _, override := range o.overrides {
		if !strings.HasPrefix(override, "http.") && !strings.HasPrefix(override, "http=") { // these have hashes of tokens, and only the server needs them
			settings.Overrides = append(settings.Overrides, override)
		}
	}
	return settings
}
