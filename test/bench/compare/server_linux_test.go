package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestMeasures measures each figure once on the real program.
func TestMeasures(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "codex-mcp")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", bin, "./codexserver/cmd/codex-mcp")
	build.Dir = "../../.." // the module of the program
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	const words = 50
	s, err := start(t.Context(), []string{bin, "-engine", "native"}, providertest.Turn{Repeat: true, Text: strings.SplitAfter(strings.Repeat("word ", words), " ")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if s.took <= 0 {
		t.Errorf("the start took %v", s.took)
	}
	if events, err := s.run(2); err != nil || events < 2*words {
		t.Errorf("%d events for two answers of %d pieces: %v", events, words, err)
	}
	if used, err := s.cpu(); err != nil || used <= 0 {
		t.Errorf("the CPU time is %v: %v", used, err)
	}
	values, err := measure(t.Context(), []string{bin})
	if err != nil || len(values) != len(figures) || slices.Min(values) <= 0 {
		t.Errorf("a start: %v, %v", values, err)
	}
	for _, figure := range []string{"VmRSS", "VmHWM"} {
		if got, err := s.memory(figure); err != nil || got < 1 {
			t.Errorf("%s: %v MiB, %v", figure, got, err)
		}
	}
}
