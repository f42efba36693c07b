package appserver

import (
	"github.com/codexmcp/codexmcp/codexserver/appserver/internal/wire"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Reach implements [engine.Reacher].
func (e *Engine) Reach() []string { return e.programs.Folders() }

// given records the folders that a call names, before anything is started for it.
func (e *Engine) given(cfg *protocol.Config) {
	e.programs.Given(cfg.Cwd)
	e.programs.Given(cfg.WritableRoots...)
}

// reaches records the folders that commands in cwd can write under a policy that Codex
// reports, before one runs.
func (e *Engine) reaches(cwd string, s *wire.SandboxPolicy) {
	e.programs.Given(cwd)
	if s.Type == wire.SandboxPolicyWorkspaceWrite {
		e.programs.Add(cwd)
		e.programs.Add(s.WritableRoots...)
	}
}

// writes returns the thread's working folder and sandbox policy.
func (t *thread) writes() (cwd string, s *wire.SandboxPolicy) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cwd, &wire.SandboxPolicy{Type: t.sandbox, WritableRoots: t.roots}
}
