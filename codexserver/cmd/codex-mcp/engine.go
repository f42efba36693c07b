package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/page"
	"github.com/codexmcp/codexmcp/internal/program"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// choice is the engine that runs the turns, and the reason for it.
type choice struct {
	engine.Engine
	io.Closer
	name, reason string
	notify       []string // the program of Codex's key, nil where Codex itself runs it
}

// configuration is what the engine and the server need besides the command line.
type configuration struct {
	home      string
	settings  *config.Settings
	overrides map[string]any
	strict    bool
	demo      bool // a script takes the place of the model
	log       *slog.Logger
	observer  codexserver.Observer // of a worker, else nil
	store     safefile.Mirror      // of a worker whose gateway has a store, else nil

	page          *page.Page     // nil if there is none
	guarded       []string       // the files of the settings and of --trace
	record, trace io.WriteCloser // of a worker; nil opens these files
}

func configure(o *options, getenv func(string) string, log *slog.Logger) (*configuration, error) {
	home, err := config.Home(getenv)
	if err != nil {
		return nil, err
	}
	settings, overrides, err := config.LoadSettings(home, o.overrides)
	if err != nil {
		return nil, err
	}
	if o.shared != nil {
		settings.Shared = *o.shared
	}
	for _, ignored := range settings.Ignored {
		log.Warn(ignored)
	}
	guarded, err := logPaths(settings.Approvals.NamedLog(), o.trace)
	if err != nil {
		return nil, err
	}
	return &configuration{guarded: guarded, home: home, settings: settings, overrides: overrides, strict: o.strict,
		log: log}, nil
}

// choose returns the engine that the command line names. With auto it returns Codex if it
// is usable, otherwise the native engine, whose first call reports what is missing.
func choose(ctx context.Context, o *options, c *configuration) (*choice, error) {
	reason := "the command line says so"
	if o.engine == "native" {
		return c.native(reason)
	}
	bridge, err := c.bridge(o.codex)
	if err == nil && o.engine != "codex" {
		limited, cancel := context.WithTimeout(ctx, 15*time.Second)
		defer cancel()
		report := bridge.Check(limited)
		if reason, err = "found Codex "+report.Version, report.Err; err != nil {
			if err := bridge.Close(); err != nil {
				c.log.Warn("closing Codex", "error", err)
			}
		}
	}
	switch {
	case err == nil && len(c.settings.Sandbox.DenyRead) > 0:
		return nil, errors.Join(errors.New("sandbox.deny_read: the installed Codex does not know it, so nothing "+
			"would keep it; "+
			"write a profile of permissions in config.toml, or start with --engine native"), bridge.Close())
	case err == nil:
		return &choice{bridge, bridge, "codex", reason, nil}, nil
	case o.engine == "codex":
		return nil, err
	}
	return c.native("Codex cannot be used: " + err.Error())
}

func (c *configuration) native(reason string) (*choice, error) {
	if c.strict {
		if unknown := config.Unknown(c.home, c.overrides, true); len(unknown) > 0 {
			return nil, fmt.Errorf("--strict-config: these keys are unknown: %s; correct or remove them",
				strings.Join(unknown, ", "))
		}
	}
	if features, _ := c.overrides["features"].(map[string]any); len(features) > 0 {
		c.log.Warn("the native engine has no features of Codex; on the command line it ignores " +
			strings.Join(slices.Sorted(maps.Keys(features)), ", "))
	}
	e, err := native.New(c.nativeOptions())
	if err != nil {
		return nil, err
	}
	return &choice{e, e, "native", reason, e.Notify()}, nil
}

func (c *configuration) nativeOptions() *native.Options {
	options := &native.Options{
		CodexHome: c.home,
		Store:     c.store,
		Overrides: c.overrides,
		Limits:    c.settings.Limits,
		Tools:     c.settings.ModelTools,
		Failover:  c.settings.Failover,
		Sandbox:   c.settings.Sandbox,
		Ask:       c.settings.Approvals.Rules().Ask,
		Hosts:     c.settings.Approvals.AskHosts(),
		HostsTip: `With approvals.hosts = "ask" in codex-mcp.toml you are asked about each host of the network ` +
			`instead, in the sandbox.`,
		Guarded: c.guarded,
		Self:    self(),
		Version: program.Version(),
		Logger:  c.log,
	}
	if c.demo {
		options.HTTPClient = &http.Client{Transport: demoModel{}}
	}
	return options
}

// bridge returns an engine for the Codex at a path. With "" it looks for Codex in the PATH.
func (c *configuration) bridge(at string) (*appserver.Engine, error) {
	return appserver.New(&appserver.Options{
		Path:      at,
		CodexHome: c.home,
		Store:     c.store,
		Overrides: c.overrides,
		Codex:     c.settings.Codex,
		Ask:       c.settings.Approvals.Rules().Ask,
		Guarded:   c.guarded,
		Self:      self(),
		Version:   program.Version(),
		Logger:    c.log,
	})
}

// self returns the path of this program's file, "" when the system does not know it.
func self() string {
	path, _ := os.Executable()
	return path
}

// engines are the values of --engine.
var engines = []string{"auto", "codex", "native"}
