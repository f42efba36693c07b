package appserver

import (
	"context"
	stdjson "encoding/json"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// The optional interfaces that the engine has.
var (
	_ engine.Resumer      = (*Engine)(nil)
	_ engine.Library      = (*Engine)(nil)
	_ engine.Accounts     = (*Engine)(nil)
	_ engine.Configurator = (*Engine)(nil)
	_ engine.Commander    = (*Engine)(nil)
	_ engine.Searcher     = (*Engine)(nil)
	_ engine.Differ       = (*Engine)(nil)
	_ engine.Reviewer     = (*conversation)(nil)
)

// config returns Codex's configuration for a folder, or the user's own if cwd is "".
func (c *child) config(ctx context.Context, cwd string) (map[string]stdjson.RawMessage, error) {
	var r struct {
		Config map[string]stdjson.RawMessage `json:"config"`
	}
	return r.Config, c.control(ctx, "config/read", configParams{Cwd: cwd}, &r)
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

// ExecOneOff implements [engine.Commander]. A command that exceeds its time limit has the
// exit code 124.
func (e *Engine) ExecOneOff(ctx context.Context, p protocol.ExecOneOffCommandParams) (*protocol.ExecOneOffCommandResult, error) {
	if len(p.Command) == 0 {
		return nil, &engine.RefusedError{Err: errors.New("command must not be empty")}
	}
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	file, err := c.config(ctx, p.Cwd)
	if err != nil {
		return nil, err
	}
	params := struct {
		Command       []string           `json:"command"`
		Cwd           string             `json:"cwd,omitzero"`
		TimeoutMS     *int64             `json:"timeoutMs,omitzero"`
		Env           map[string]*string `json:"env,omitempty"`
		SandboxPolicy *sandboxPolicy     `json:"sandboxPolicy,omitzero"`
	}{p.Command, p.Cwd, p.TimeoutMs, withheld(file), nil}
	if p.SandboxPolicy != nil {
		if params.SandboxPolicy = sandboxOf(*p.SandboxPolicy); params.SandboxPolicy == nil {
			return nil, &engine.RefusedError{Err: errors.New("sandboxPolicy: its mode is not known")}
		}
	}
	e.programs.Given(p.Cwd)
	if params.SandboxPolicy != nil {
		e.reaches(p.Cwd, params.SandboxPolicy)
	} else {
		e.programs.Add(value[[]string](table(file[workspaceTable])["writable_roots"])...)
	}
	r := &protocol.ExecOneOffCommandResult{}
	if err := c.peer.Call(ctx, "command/exec", params, r); err != nil {
		return nil, c.explain(err)
	}
	return r, nil
}

// SearchFiles implements [engine.Searcher].
func (e *Engine) SearchFiles(ctx context.Context, p protocol.FuzzyFileSearchParams) (*protocol.FuzzyFileSearchResult, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	var r struct {
		Files []stdjson.RawMessage `json:"files"`
	}
	if err := c.control(ctx, "fuzzyFileSearch", p, &r); err != nil {
		return nil, err
	}
	found := &protocol.FuzzyFileSearchResult{Files: []protocol.FuzzyFile{}}
	for _, raw := range r.Files {
		var kind struct {
			MatchType string `json:"match_type"` // newer versions find folders too
		}
		var f protocol.FuzzyFile
		if err := errors.Join(json.Unmarshal(raw, &kind), json.Unmarshal(raw, &f)); err != nil {
			return nil, err
		}
		if kind.MatchType == "" || kind.MatchType == "file" {
			found.Files = append(found.Files, f)
		}
	}
	return found, nil
}

// GitDiffToRemote implements [engine.Differ].
func (e *Engine) GitDiffToRemote(ctx context.Context, cwd string) (*protocol.GitDiffToRemoteResult, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	r := &protocol.GitDiffToRemoteResult{}
	if err := c.control(ctx, "gitDiffToRemote", map[string]string{"cwd": cwd}, r); err != nil {
		return nil, &engine.RefusedError{Err: err}
	}
	return r, nil
}

// SetDefaultModel implements [engine.Configurator].
func (e *Engine) SetDefaultModel(ctx context.Context, p protocol.SetDefaultModelParams) error {
	c, err := e.child(ctx)
	if err != nil {
		return err
	}
	for _, w := range []struct {
		key   string
		value any
	}{{"model", p.Model}, {"model_reasoning_effort", p.ReasoningEffort}} {
		params := map[string]any{"keyPath": w.key, "value": w.value, "mergeStrategy": "replace"}
		if err := c.control(ctx, "config/value/write", params, nil); err != nil {
			return err
		}
	}
	return nil
}
