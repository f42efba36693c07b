package appserver

import "github.com/codexmcp/codexmcp/codexserver/protocol"

// Reach implements [engine.Reacher].
func (e *Engine) Reach() []string { return e.programs.Folders() }

// given records the folders that a call names, before anything is started for it.
func (e *Engine) given(cfg *protocol.Config) {
	e.programs.Given(cfg.Cwd)
	e.programs.Given(cfg.WritableRoots...)
}

// reaches records the folders that commands in cwd can write under a policy that Codex
// reports, before one runs.
func (e *Engine) reaches(cwd string, s *sandboxPolicy) {
	e.programs.Given(cwd)
	if s.Type == "workspaceWrite" {
		e.programs.Add(cwd)
		e.programs.Add(s.WritableRoots...)
	}
}

// writes returns the thread's working folder and sandbox policy.
func (t *thread) writes() (cwd string, s *sandboxPolicy) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cwd, &sandboxPolicy{Type: t.sandbox, WritableRoots: t.roots}
}
