package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	native.Main() // does not return if the engine started this process to run commands
	os.Exit(m.Run())
}

// TestPerson has a person answer the question of a scripted model. Only yes makes the folder.
func TestPerson(t *testing.T) {
	for typed, want := range map[string]struct {
		made bool
		said string
	}{
		"yes\n":  {true, "It says: \n"},
		"no\n":   {false, "It says: the command was not run: declined\n"},
		"stop\n": {false, ""},
		"":       {false, "\nIt says: the command was not run: declined\n"},
	} {
		t.Run(typed, func(t *testing.T) {
			cwd, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(cwd)
			model := providertest.New(
				providertest.Call(providertest.Shell("1", "mkdir", "made")),
				providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
					return providertest.Say("It says: " + r.LastToolOutput())
				}})
			defer model.Close()
			e, err := native.New(&native.Options{CodexHome: t.TempDir(), Overrides: map[string]any{
				"model": "m", "model_provider": "p", "model_providers.p.base_url": model.BaseURL(),
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			var out strings.Builder
			if err := run(t.Context(), e, "Make a folder.", strings.NewReader(typed), &out); (err != nil) != (typed == "stop\n") {
				t.Errorf("run: %v", err)
			}
			question := "Allow codex-mcp to run `mkdir made` in `" + cwd + "`?\nIf approved, it runs outside the sandbox, once: files and network are open. (yes, no, stop) "
			if diff := cmp.Diff(question+want.said, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, err := os.Stat("made"); (err == nil) != want.made {
				t.Errorf("the folder: %v", err)
			}
		})
	}
}
