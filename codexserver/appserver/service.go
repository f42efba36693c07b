package appserver

import (
	"context"
	stdjson "encoding/json"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// The optional interfaces that the engine has.
var (
	_ engine.Describer    = (*Engine)(nil)
	_ engine.Resumer      = (*Engine)(nil)
	_ engine.Library      = (*Engine)(nil)
	_ engine.Accounts     = (*Engine)(nil)
	_ engine.Configurator = (*Engine)(nil)
	_ engine.Workspace    = (*Engine)(nil)
	_ engine.Reviewer     = (*conversation)(nil)
	_ engine.Continuable  = (*conversation)(nil)
	_ engine.Extended     = (*conversation)(nil)
)

// config returns Codex's configuration for a folder, or the user's own if cwd is "".
func (c *child) config(ctx context.Context, cwd string) (map[string]stdjson.RawMessage, error) {
	var r apptypes.ConfigReply
	return r.Config, c.control(ctx, apptypes.CallConfigRead, apptypes.ConfigParams{Cwd: cwd}, &r)
}

// configuration returns Codex's configuration for a folder, with its layers.
func (c *child) configuration(ctx context.Context, cwd string) (configuration, error) {
	var r apptypes.ConfigReply
	err := c.control(ctx, apptypes.CallConfigRead, apptypes.ConfigParams{Cwd: cwd, IncludeLayers: true}, &r)
	return layered(&r), err
}

// control calls a method that is answered soon, in an app-server that is started if none runs.
func (e *Engine) control(ctx context.Context, method string, params, result any) error {
	c, err := e.child(ctx)
	if err != nil {
		return err
	}
	return c.control(ctx, method, params, result)
}

// SavedConfig implements [engine.Configurator].
func (e *Engine) SavedConfig(ctx context.Context) (*protocol.UserSavedConfig, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	config, err := c.config(ctx, "")
	if err != nil {
		return nil, err
	}
	return savedConfig(config), nil
}

// ExecOneOff implements [engine.Workspace]. A command that exceeds its time limit has the
// exit code 124.
func (e *Engine) ExecOneOff(ctx context.Context, p protocol.ExecOneOffCommandParams) (*protocol.ExecOneOffCommandResult, error) {
	if len(p.Command) == 0 {
		return nil, &engine.RefusedError{Err: errors.New("command must not be empty")}
	}
	if from := engine.OriginOf(ctx); from != nil {
		p.Cwd, _ = engine.Abs(ctx, p.Cwd) // which cannot fail
	}
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	file, err := c.config(ctx, p.Cwd)
	if err != nil {
		return nil, err
	}
	params := apptypes.ExecParams{Command: p.Command, Cwd: p.Cwd, TimeoutMs: p.TimeoutMs}
	if env := withheld(engine.OriginOf(ctx), file); len(env) > 0 {
		params.Env = env
	}
	if p.SandboxPolicy != nil {
		if params.SandboxPolicy = sandboxOf(*p.SandboxPolicy); params.SandboxPolicy == nil {
			return nil, &engine.RefusedError{Err: errors.New("sandboxPolicy: its mode is not known")}
		}
	}
	e.programs.Given(p.Cwd)
	if params.SandboxPolicy != nil {
		if err := e.reaches(p.Cwd, params.SandboxPolicy); err != nil {
			return nil, err
		}
	} else {
		e.programs.Add(value[[]string](table(file[workspaceTable])["writable_roots"])...)
	}
	var r apptypes.ExecReply
	if err := c.app.Call(ctx, apptypes.CallCommandExec, params, &r); err != nil {
		return nil, c.explain(err)
	}
	return &protocol.ExecOneOffCommandResult{ExitCode: int(r.ExitCode), Stdout: r.Stdout, Stderr: r.Stderr}, nil
}

// SearchFiles implements [engine.Workspace].
func (e *Engine) SearchFiles(ctx context.Context, p protocol.FuzzyFileSearchParams) (*protocol.FuzzyFileSearchResult, error) {
	var r apptypes.SearchReply
	if err := e.control(ctx, apptypes.CallFuzzyFileSearch, apptypes.SearchParams{CancellationToken: p.CancellationToken, Query: p.Query, Roots: p.Roots}, &r); err != nil {
		return nil, err
	}
	found := &protocol.FuzzyFileSearchResult{Files: []protocol.FuzzyFile{}}
	for _, f := range r.Files {
		if f.MatchType != "" && f.MatchType != apptypes.FuzzyFileSearchMatchTypeFile {
			continue // newer versions find folders too
		}
		file := protocol.FuzzyFile{Root: f.Root, Path: f.Path, FileName: f.FileName, Score: uint32(f.Score)}
		for _, i := range f.Indices {
			file.Indices = append(file.Indices, uint32(i))
		}
		found.Files = append(found.Files, file)
	}
	return found, nil
}

// GitDiffToRemote implements [engine.Workspace].
func (e *Engine) GitDiffToRemote(ctx context.Context, cwd string) (*protocol.GitDiffToRemoteResult, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	r := &protocol.GitDiffToRemoteResult{}
	if err := c.control(ctx, callDiff, map[string]string{"cwd": cwd}, r); err != nil {
		return nil, &engine.RefusedError{Err: err}
	}
	return r, nil
}

// SetDefaultModel implements [engine.Configurator].
func (e *Engine) SetDefaultModel(ctx context.Context, p protocol.SetDefaultModelParams) error {
	for _, w := range []struct {
		key   string
		value any
	}{{"model", p.Model}, {"model_reasoning_effort", p.ReasoningEffort}} {
		value, err := json.Marshal(w.value)
		if err != nil {
			return err
		}
		params := apptypes.ConfigWrite{KeyPath: w.key, Value: value, MergeStrategy: apptypes.MergeStrategyReplace}
		if err := e.control(ctx, apptypes.CallConfigValueWrite, params, nil); err != nil {
			return err
		}
	}
	return nil
}
