package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/examples/internal/exampletest"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	native.Main() // does not return if the engine started this process to run commands
	os.Exit(m.Run())
}

// TestNight has a scripted model write two files. The patch has those that the budget allows, and
// the repository has none.
func TestNight(t *testing.T) {
	write := func(path string) providertest.Turn {
		turn := providertest.Call(providertest.Tool(path, "write", map[string]any{"path": path, "content": "new\n"}))
		turn.Usage = &providertest.Usage{Input: 90, Output: 10}
		return turn
	}
	for _, tt := range []struct {
		name   string
		tokens int
		log    string
		second bool // file
	}{
		{"enough", 1000, "completed: I wrote them.\ntokens: 190 in, 25 out\n", true},
		{"spent", 150, "aborted: The turn was stopped: budget of 150 tokens reached. What it has changed stays; codex-reply continues.\ntokens: 180 in, 20 out\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repo := exampletest.Repository(t)
			var patch, log strings.Builder
			c := exampletest.Connect(t, write("b.txt"), write("c.txt"), providertest.Say("I wrote them."))
			if err := run(t.Context(), c, repo, "write", map[string]any{"tokens": tt.tokens}, &patch, &log); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(tt.log, log.String()); diff != "" {
				t.Errorf("the report (-want +got):\n%s", diff)
			}
			if _, err := os.Stat(filepath.Join(repo, "b.txt")); err == nil {
				t.Error("the repository has the file")
			}
			git := exec.Command("git", "-C", repo, "apply", "-")
			git.Stdin = strings.NewReader(patch.String())
			if out, err := git.CombinedOutput(); err != nil {
				t.Fatalf("git apply: %v\n%s\n%s", err, out, patch.String())
			}
			if text, err := os.ReadFile(filepath.Join(repo, "b.txt")); string(text) != "new\n" {
				t.Errorf("the patch made %q, %v", text, err)
			}
			if _, err := os.Stat(filepath.Join(repo, "c.txt")); (err == nil) != tt.second {
				t.Errorf("the second file: %v", err)
			}
		})
	}
}

// TestWorkflow checks nightly.yml.
func TestWorkflow(t *testing.T) {
	if out, err := exec.Command("go", "tool", "actionlint", "-shellcheck=", "-pyflakes=", "nightly.yml").CombinedOutput(); err != nil {
		t.Errorf("actionlint: %v\n%s", err, out)
	}
}
