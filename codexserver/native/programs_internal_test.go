package native

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
)

// TestReach has a program in a folder that commands of another engine can write, from a time on.
func TestReach(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var folders []string
	e, err := New(&Options{CodexHome: t.TempDir(), Reach: func() []string { return folders }})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, folders = range [][]string{nil, {dir}, nil} {
		started := false
		err := e.programs.Start(exec.Command(program), func() error {
			started = true
			return nil
		})
		if _, refused := errors.AsType[*sandbox.ProgramError](err); started == refused || refused != (folders != nil) {
			t.Errorf("%q: started %v: %v", folders, started, err)
		}
	}
}
