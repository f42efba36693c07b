package main

import (
	"errors"
	"os/exec"
	"testing"
)

// TestNoCodex runs where there is no codex. TestRealOutside of package appclient runs the program with the real one.
func TestNoCodex(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := run(t.Context(), "a task"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}
