package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"mvdan.cc/sh/v3/shell"
)

// TestRecipes runs the command lines of docs/use/recipes.md in their order, with a model that answers
// each task.
func TestRecipes(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/use/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	model := providertest.New(providertest.Turn{Text: []string{"Here it is."}, Repeat: true})
	defer model.Close()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CODEX_HOME", home)
	t.Setenv("CODEX_BIN", "/no/codex")
	writeConfig(t, home, "model = \"m\"\nmodel_provider = \"p\"\n[model_providers.p]\nbase_url = \""+model.BaseURL()+"\"\nwire_api = \"chat\"\n")
	t.Chdir(t.TempDir())

	redirection := regexp.MustCompile(` > \S+$`)
	tried := 0
	for _, block := range blocks(string(page), "sh") {
		for line := range strings.Lines(block) {
			before, command, ok := strings.Cut(strings.TrimSpace(line), "codex-mcp ")
			if !ok || before != "" && !strings.HasSuffix(before, "| ") {
				t.Errorf("%q does not start the program", line)
				continue
			}
			tried++
			args, err := shell.Fields(redirection.ReplaceAllString(command, ""), os.Getenv)
			if err != nil {
				t.Fatal(err)
			}
			if before != "" {
				pipe(t, "a task")
			}
			var out bytes.Buffer
			if code := run(t.Context(), "codex-mcp", args, &out, &out); code != 0 {
				t.Errorf("%s: exit status %d\n%s", strings.TrimSpace(line), code, &out)
			} else if args[0] == "ask" && !strings.Contains(out.String(), "Here it is.") {
				t.Errorf("%s: no answer in\n%s", strings.TrimSpace(line), &out)
			}
		}
	}
	if tried < 12 {
		t.Errorf("only %d command lines found: the search is broken", tried)
	}
}

// pipe makes a text the standard input until the test ends.
func pipe(t *testing.T, text string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stdin
	os.Stdin = f
	t.Cleanup(func() { os.Stdin = old; _ = f.Close() })
}
