package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestMeasures measures each figure once on the real program, and plays each session.
func TestMeasures(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "codex-mcp")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", bin, "./codexserver/cmd/codex-mcp")
	build.Dir = "../../.." // the module of the program
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	folder, err := newFolder(3)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	for _, m := range measurements {
		values, err := m.measure(t.Context(), []string{bin, "--engine", "native"}, folder)
		if err != nil || len(values) != len(m.figures) || slices.Min(values) <= 0 {
			t.Errorf("%q: %v, %v", m.figures, values, err)
		}
	}
	for _, session := range []string{"connect", "plain", "approval"} {
		if err := play(t.Context(), session, []string{bin, "--engine", "native"}, folder); err != nil {
			t.Errorf("%s: %v", session, err)
		}
	}
}
