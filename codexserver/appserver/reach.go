package appserver

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// given records the folders that a call names, before anything is started for it.
func (e *Engine) given(cfg *protocol.Config) {
	e.programs.Given(cfg.Cwd)
}

// reaches records the folders that commands in cwd can write under a policy, before one runs.
// After an error none may run: it could write a guarded file.
func (e *Engine) reaches(cwd string, s *protocol.SandboxPolicy) error {
	e.programs.Given(cwd)
	if s.Mode != protocol.SandboxWorkspaceWrite {
		return nil
	}
	e.programs.Add(cwd)
	e.programs.Add(s.WritableRoots...)
	for _, file := range e.options.Guarded {
		for _, folder := range box.Writable(*s, cwd, os.Environ()) {
			if box.Reaches(filepath.Dir(file), folder) {
				return &engine.RefusedError{Err: fmt.Errorf("commands could write in %s, which holds %s, a file of this server; choose another folder, or the sandbox %s", folder, file, protocol.SandboxReadOnly)}
			}
		}
	}
	return nil
}
