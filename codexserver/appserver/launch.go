package appserver

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// defaults are the overrides that the app-server does not take on its command line. They
// hold for each conversation that does not set them itself.
type defaults struct {
	profile string
	policy  string
	keys    map[string]stdjson.RawMessage // all overrides, flat; they win over a profile
	// disabled are the names of MCP servers. Codex does not start with a key of an unknown
	// server, so the key is sent with each conversation.
	disabled []string
}

// commandLine returns the arguments of the app-server, and the overrides that cannot be
// among them.
func commandLine(overrides map[string]any) ([]string, defaults, error) {
	d := defaults{keys: map[string]stdjson.RawMessage{}}
	nested := make(map[string]stdjson.RawMessage, len(overrides))
	for key, value := range overrides {
		if config.Ours(key) {
			continue
		}
		raw, err := json.Marshal(value, json.Deterministic(true))
		if err != nil {
			return nil, d, fmt.Errorf("override %s: %w", key, err)
		}
		nested[key] = raw
	}
	if err := flatten(d.keys, "", nested); err != nil {
		return nil, d, fmt.Errorf("overrides: %w", err)
	}
	var rest threadParams
	passed := maps.Clone(d.keys)
	if raw, ok := passed["profile"]; ok {
		delete(passed, "profile")
		if json.Unmarshal(raw, &d.profile) != nil {
			return nil, d, errors.New("override profile: not a string")
		}
	}
	if err := rest.take(passed, version{}); err != nil {
		return nil, d, err
	}
	d.disabled = takeDisabled(passed)
	d.policy = rest.ApprovalPolicy
	args := []string{"app-server"}
	for _, key := range slices.Sorted(maps.Keys(passed)) {
		args = append(args, "-c", key+"="+tomlOf(jsontext.Value(passed[key])))
	}
	return args, d, nil
}

// tomlOf writes a JSON value as an inline TOML value.
func tomlOf(v jsontext.Value) string {
	switch v.Kind() {
	case '{':
		var members map[string]jsontext.Value
		if json.Unmarshal(v, &members) != nil {
			return "{}"
		}
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(members)) {
			name, _ := jsontext.AppendQuote(nil, k) // k was decoded, so it is valid
			parts = append(parts, string(name)+" = "+tomlOf(members[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case '[':
		var elements []jsontext.Value
		if json.Unmarshal(v, &elements) != nil {
			return "[]"
		}
		parts := make([]string, len(elements))
		for i, el := range elements {
			parts[i] = tomlOf(el)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return string(v) // JSON and TOML write strings, numbers and booleans alike
}

// params returns the parameters that start a thread, or that resume the thread of an id.
// The defaults do not apply to a resumed thread, which keeps its own settings.
func (e *Engine) params(ctx context.Context, cfg protocol.Config, c *child, id string) (threadParams, error) {
	isNew, folder := id == "", cfg.Cwd
	var s summary
	if !isNew {
		var err error
		if s, err = c.summary(ctx, id); err != nil {
			c.log.Debug("codex: the working folder of a thread is unknown", "thread", id, "error", err) // thread/resume reports the error
		}
		folder = cmp.Or(folder, s.Cwd)
	}
	layers, err := c.configuration(ctx, folder)
	if err != nil {
		return threadParams{}, err
	}
	file := layers.keys
	var call map[string]stdjson.RawMessage // the call's shell_environment_policy
	if cfg.FromCall {
		if cfg.Overrides, call, err = splitCall(cfg.Overrides, file); err != nil {
			return threadParams{}, err
		}
	}
	if cfg.Profile == "" && isNew {
		if _, own := cfg.Overrides["profile"]; !own {
			cfg.Profile = e.defaults.profile
		}
	}
	home, err := e.homeOf(c)
	if err != nil {
		return threadParams{}, err
	}
	p, err := startParams(cfg, c.version, home, e.defaults.keys)
	if err != nil {
		return p, err
	}
	if p.ApprovalPolicy == "" && isNew {
		p.ApprovalPolicy = string(policyWord(protocol.ApprovalPolicy(c.policy)))
	}
	if err := p.choose(&cfg, file); err != nil {
		return p, err
	}
	if p.base, err = e.configured(c, &layers, folder, home); err != nil {
		return p, err
	}
	if p.now, err = p.grants(&layers, folder); err != nil {
		return p, err
	}
	if !isNew {
		p.restore(&s, &layers)
	}
	if err := p.openRoots(cfg.FromCall, home); err != nil {
		return p, err
	}
	p.strip()
	if e.options.AskUser {
		p.ApprovalsReviewer = byUser
	}
	if err := e.setServers(c, file, folder, &p); err != nil {
		return p, err
	}
	if err := p.restrict(engine.OriginOf(ctx), file, call); err != nil {
		return p, err
	}
	c.learn(file, p.Config)
	if c.version.Less(keepsSnapshot) {
		p.Config["features.shell_snapshot"] = stdjson.RawMessage("false")
	}
	if !cfg.ReadOnly {
		return p, nil
	}
	return p, p.keepToReading(file)
}

// configured returns what the configuration gives a conversation in a folder whose call chooses
// nothing. A sandbox that cannot be judged counts as the narrowest.
func (e *Engine) configured(c *child, file *configuration, folder, home string) (g box.Grant, err error) {
	p, err := startParams(protocol.Config{Profile: e.defaults.profile}, c.version, home, e.defaults.keys)
	if err != nil {
		return g, err
	}
	g, err = p.grants(file, folder)
	if err != nil {
		p.Sandbox = apptypes.SandboxModeReadOnly
		g, err = p.grants(file, folder)
	}
	g.Policy = p.policyIn(c, file, folder)
	return g, err
}

func (e *Engine) home() (string, error) {
	if e.options.CodexHome != "" {
		return filepath.Abs(e.options.CodexHome)
	}
	return config.Home(os.Getenv)
}

// homeOf returns the folder of a running Codex.
func (e *Engine) homeOf(c *child) (string, error) {
	if c.home != "" {
		return c.home, nil
	}
	return e.home()
}

// openInstalled starts the app-server of the installed Codex.
func (e *Engine) openInstalled(ctx context.Context) (*child, error) {
	paths, err := find(e.programs, e.options.Path)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		c, err := e.openProgram(ctx, path)
		if !errors.Is(err, errOwn) {
			return c, err
		}
	}
	return nil, &NotFoundError{Path: paths[0], Err: own(paths[0])}
}

// openProgram starts the program at path as an app-server. The error is errOwn if the
// program is codex-mcp and not Codex.
func (e *Engine) openProgram(ctx context.Context, path string) (*child, error) {
	c, err := e.spawn(ctx, path, e.args)
	if err == nil {
		c.policy = e.defaults.policy
		return c, nil
	}
	if ctx.Err() == nil && e.defaults.policy == "" && errors.Is(err, errUntrusted) {
		// Today's Codex does not start with this word in config.toml, but takes it with
		// each thread.
		args := append(slices.Clone(e.args), "-c", `approval_policy="on-request"`)
		if c, again := e.spawn(ctx, path, args); again == nil {
			c.log.Log(ctx, slog.LevelInfo, `codex: approval_policy = "untrusted" of config.toml is sent with each conversation`)
			c.policy = string(protocol.ApprovalUntrusted)
			return c, nil
		}
	}
	return nil, e.older(ctx, path, err)
}

func (e *Engine) spawn(ctx context.Context, path string, args []string) (*child, error) {
	stderr := &tail{log: e.options.logger()}
	p, err := spawn(ctx, e.programs, &e.processes, path, args, e.environment(), stderr)
	if err != nil {
		return nil, fmt.Errorf("codex app-server cannot be started: %w", err)
	}
	c, err := connect(ctx, p, stderr, e.programs, &e.options)
	if err != nil {
		return nil, err
	}
	c.log.Debug("codex: app-server started", "pid", p.pid, "path", path, "version", c.version.String())
	return c, nil
}

// older returns the reason of a failed start: the program may be an old version without an
// app-server, or not Codex. Otherwise it returns err.
func (e *Engine) older(ctx context.Context, path string, err error) error {
	var old *TooOldError
	if errors.As(err, &old) {
		return err
	}
	v, unread := e.programVersion(ctx, path)
	if errors.Is(unread, errOwn) {
		return unread
	}
	if unread == nil {
		if old := v.Check(); old != nil {
			return old
		}
	}
	return err
}

// programVersion runs the program with --version, which prints "codex-cli 0.169.0".
func (e *Engine) programVersion(ctx context.Context, path string) (version, error) {
	ctx, stop := context.WithTimeout(ctx, versionLimit)
	defer stop()
	cmd := exec.Command(path, "--version")
	var conn *run.Conn
	cmd.Env = e.environment()
	err := e.programs.Start(cmd, func() (err error) {
		conn, err = e.processes.Connect(ctx, cmd, run.Talk{Leave: versionLimit})
		return err
	})
	var out []byte
	if err == nil {
		defer context.AfterFunc(ctx, func() { _ = conn.End() })()
		out, err = io.ReadAll(io.LimitReader(conn.Out, 1<<20))
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		return version{}, fmt.Errorf("%s --version: %w", path, err)
	}
	words := strings.Fields(string(out))
	if len(words) == 0 {
		return version{}, fmt.Errorf("%s --version says nothing", path)
	}
	if strings.Contains(string(out), ownName) {
		return version{}, errOwn
	}
	return appclient.ParseVersion(words[len(words)-1])
}
