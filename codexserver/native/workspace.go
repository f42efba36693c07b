package native

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/search"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

var (
	_ engine.Configurator = (*Engine)(nil)
	_ engine.Workspace    = (*Engine)(nil)
	_ engine.Describer    = (*Engine)(nil)
)

// SavedConfig implements [engine.Configurator].
func (e *Engine) SavedConfig(context.Context) (*protocol.UserSavedConfig, error) {
	return config.Saved(e.options.CodexHome)
}

// SetDefaultModel implements [engine.Configurator]. If config.toml selects a profile, it
// sets the profile's model.
func (e *Engine) SetDefaultModel(_ context.Context, p protocol.SetDefaultModelParams) error {
	return config.SetDefaultModel(e.options.CodexHome, p.Model, p.ReasoningEffort)
}

// scratch says where git works: in a folder that commands cannot write, next to the
// configuration.
func (e *Engine) scratch() repo.Scratch {
	return repo.Scratch{Dir: filepath.Join(e.options.CodexHome, "tmp"), Programs: e.programs}
}

// Traits implements [engine.Describer].
func (e *Engine) Traits() engine.Traits {
	return engine.Traits{Announces: true, Shortens: true, Reach: e.reached, Holder: e.holder, CanContinue: e.canContinue}
}

// reached returns the folders of [engine.Traits].Reach.
func (e *Engine) reached() []string { return append(e.programs.Folders(), e.folders.Paths()...) }

// SearchFiles implements [engine.Workspace]. It returns at most 50 files of each root.
func (e *Engine) SearchFiles(ctx context.Context, p protocol.FuzzyFileSearchParams) (*protocol.FuzzyFileSearchResult, error) {
	leave, err := e.searches.take(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return &protocol.FuzzyFileSearchResult{Files: search.Files(ctx, p.Query, p.Roots)}, nil
}

// GitDiffToRemote implements [engine.Workspace].
func (e *Engine) GitDiffToRemote(ctx context.Context, cwd string) (*protocol.GitDiffToRemoteResult, error) {
	if !filepath.IsAbs(cwd) {
		return nil, &engine.RefusedError{Err: fmt.Errorf("cwd: want an absolute path, found %q", cwd)}
	}
	sha, diff, err := repo.DiffToRemote(ctx, cwd, e.scratch())
	if err != nil {
		return nil, &engine.RefusedError{Err: err}
	}
	return &protocol.GitDiffToRemoteResult{SHA: sha, Diff: diff}, nil
}

// ExecOneOff implements [engine.Workspace]. It fails with a [*engine.RefusedError] if this
// system cannot enforce the sandbox policy: no command runs with a weaker sandbox than
// requested.
func (e *Engine) ExecOneOff(ctx context.Context, p protocol.ExecOneOffCommandParams) (*protocol.ExecOneOffCommandResult, error) {
	if len(p.Command) == 0 {
		return nil, &engine.RefusedError{Err: errors.New("command: must not be empty")}
	}
	spec, err := e.oneOff(ctx, p)
	if err != nil {
		return nil, err
	}
	if c, ok := spec.Confinement.(*sandbox.Confinement); ok {
		unmark, err := e.marks.Write(ctx, spec.Timeout, nil, c.Writable()...)
		if err != nil {
			return nil, &engine.RefusedError{Err: err}
		}
		defer unmark()
	}
	end := e.activity.Begin()
	done, err := e.processes.Run(ctx, spec, nil)
	end()
	if err != nil {
		return nil, err
	}
	if done.TimedOut {
		return nil, fmt.Errorf("the command timed out after %v", spec.Timeout)
	}
	return &protocol.ExecOneOffCommandResult{ExitCode: done.ExitCode, Stdout: done.Stdout, Stderr: done.Stderr}, nil
}

func (e *Engine) oneOff(ctx context.Context, p protocol.ExecOneOffCommandParams) (proc.Spec, error) {
	cfg, err := e.configFor(ctx, protocol.Config{})
	if err != nil {
		return proc.Spec{}, err
	}
	spec := proc.Spec{Argv: p.Command, Env: environ(cfg), Timeout: proc.DefaultTimeout}
	if p.TimeoutMs != nil {
		// From a millisecond to a day.
		const most = int64(24 * time.Hour / time.Millisecond)
		spec.Timeout = time.Duration(min(max(*p.TimeoutMs, 1), most)) * time.Millisecond
	}
	if spec.Dir, err = engine.Abs(ctx, p.Cwd); err != nil {
		return proc.Spec{}, err
	}
	policy := cfg.Sandbox()
	if p.SandboxPolicy != nil {
		policy = *p.SandboxPolicy
	}
	if policy.Mode == protocol.SandboxDangerFullAccess {
		return spec, nil
	}
	box := e.newSandbox(cfg)
	roots, _ := box.Roots(policy, spec.Dir, spec.Env) // Confine returns its error
	e.reach(spec.Dir, roots)
	confinement, err := box.Confine(policy, spec.Dir, spec.Env)
	if err != nil {
		return proc.Spec{}, &engine.RefusedError{Err: fmt.Errorf("sandboxPolicy %q cannot be enforced: %w", string(policy.Mode), err)}
	}
	spec.Confinement = confinement
	spec.Env = append(spec.Env, confinement.Environ()...)
	return spec, nil
}
