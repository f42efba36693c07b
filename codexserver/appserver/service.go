package appserver

import (
	"context"
	"encoding/json"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// UserAgent is what Codex tells providers about itself, with its version.
func (e *Engine) UserAgent(ctx context.Context) (string, error) {
	c, err := e.child(ctx)
	if err != nil {
		return "", err
	}
	return c.agent, nil
}

// Model is one of the models that Codex knows.
type Model struct {
	// ID is for the configuration key model.
	ID string `json:"model"`
	// Name and Description are for people.
	Name        string `json:"displayName"`
	Description string `json:"description"`
	// Default is whether it is used where nothing is configured.
	Default bool `json:"isDefault"`
	// DefaultEffort is the effort where none is configured.
	DefaultEffort string `json:"defaultReasoningEffort"`
}

// Models lists the models, also when nobody is signed in.
func (e *Engine) Models(ctx context.Context) ([]Model, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	var all []Model
	for cursor := ""; ; {
		var r struct {
			Data       []Model `json:"data"`
			NextCursor string  `json:"nextCursor"`
		}
		params := map[string]string{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		if err := c.control(ctx, "model/list", params, &r); err != nil {
			return nil, err
		}
		all = append(all, r.Data...)
		if r.NextCursor == "" || r.NextCursor == cursor {
			return all, nil
		}
		cursor = r.NextCursor
	}
}

// SavedConfig is Codex's configuration as its own keys (snake case) say it.
func (e *Engine) SavedConfig(ctx context.Context) (map[string]json.RawMessage, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	return c.config(ctx)
}

func (c *child) config(ctx context.Context) (map[string]json.RawMessage, error) {
	var r struct {
		Config map[string]json.RawMessage `json:"config"`
	}
	return r.Config, c.control(ctx, "config/read", struct{}{}, &r)
}

// SetDefaultModel writes the model and its effort to config.toml, and takes out
// what is nil.
func (e *Engine) SetDefaultModel(ctx context.Context, model, effort *string) error {
	c, err := e.child(ctx)
	if err != nil {
		return err
	}
	for _, w := range []struct {
		key   string
		value *string
	}{{"model", model}, {"model_reasoning_effort", effort}} {
		params := map[string]any{"keyPath": w.key, "value": w.value, "mergeStrategy": "replace"}
		if err := c.control(ctx, "config/value/write", params, nil); err != nil {
			return err
		}
	}
	return nil
}

// Command is a command to run once, outside of any conversation.
type Command struct {
	// Argv is the program and its arguments.
	Argv []string
	// Cwd is the folder, by default the app-server's own.
	Cwd string
	// Timeout is Codex's own when it is 0.
	Timeout time.Duration
	// Sandbox is the configured one when it is nil.
	Sandbox *protocol.SandboxPolicy
}

// CommandResult is how it ended. One that took too long has the exit code 124.
type CommandResult struct {
	ExitCode int    `json:"exitCode"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
}

// RunCommand runs a command in Codex's sandbox. It is the caller's own wish,
// and nobody is asked.
func (e *Engine) RunCommand(ctx context.Context, cmd Command) (*CommandResult, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	params := struct {
		Command       []string       `json:"command"`
		Cwd           string         `json:"cwd,omitzero"`
		TimeoutMS     int64          `json:"timeoutMs,omitzero"`
		SandboxPolicy *sandboxPolicy `json:"sandboxPolicy,omitzero"`
	}{cmd.Argv, cmd.Cwd, cmd.Timeout.Milliseconds(), nil}
	if cmd.Sandbox != nil {
		params.SandboxPolicy = sandboxOf(*cmd.Sandbox)
	}
	r := &CommandResult{}
	if err := c.peer.Call(ctx, "command/exec", params, r); err != nil {
		return nil, c.explain(err)
	}
	return r, nil
}

// GitDiff is what a working folder has over its remote branch.
type GitDiff struct {
	SHA  string `json:"sha"` // of the nearest commit that the remote has
	Diff string `json:"diff"`
}

// GitDiff compares a folder with its remote. Codex answers it although its
// schema does not list it; a version without it gives an error.
func (e *Engine) GitDiff(ctx context.Context, cwd string) (*GitDiff, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	d := &GitDiff{}
	if err := c.control(ctx, "gitDiffToRemote", map[string]string{"cwd": cwd}, d); err != nil {
		return nil, err
	}
	return d, nil
}

// FileMatch is one result of SearchFiles.
type FileMatch struct {
	Root     string `json:"root"`
	Path     string `json:"path"` // relative to Root
	FileName string `json:"file_name"`
	Score    int64  `json:"score"`
	Indices  []int  `json:"indices,omitempty"` // of the characters in Path that matched
}

// SearchFiles finds files below the roots by a fuzzy query, the best first. A
// search with a token ends an earlier one with the same token.
func (e *Engine) SearchFiles(ctx context.Context, query string, roots []string, token string) ([]FileMatch, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	params := struct {
		Query string   `json:"query"`
		Roots []string `json:"roots"`
		Token string   `json:"cancellationToken,omitzero"`
	}{query, roots, token}
	var r struct {
		Files []struct {
			FileMatch
			MatchType string `json:"match_type"` // newer versions find folders too
		} `json:"files"`
	}
	if err := c.control(ctx, "fuzzyFileSearch", params, &r); err != nil {
		return nil, err
	}
	files := make([]FileMatch, 0, len(r.Files))
	for _, f := range r.Files {
		if f.MatchType == "" || f.MatchType == "file" {
			files = append(files, f.FileMatch)
		}
	}
	return files, nil
}
