//go:build readme && unix

// Package readme_test runs the commands of the pages, as their readers would type them.
package readme_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// tested says how a command of a page is tested: commands.txt has the forms.
type tested struct {
	line   string
	as     []string // a script in place of the line
	prints []string
	runs   bool // by this test
}

// commands returns the entries of commands.txt, and the functions for their scripts. It fails if a file that
// runs a command has not the words.
func commands(t *testing.T) (all []tested, functions string) {
	t.Helper()
	text := read(t, "internal/house/readme/commands.txt")
	functions, text, _ = strings.Cut(text, "\n$ ")
	for entry := range strings.SplitSeq(text, "\n$ ") {
		line, rest, _ := strings.Cut(entry, "\n")
		c := tested{line: line}
		for how := range strings.Lines(rest) {
			verb, what, _ := strings.Cut(strings.TrimSuffix(how, "\n"), " ")
			switch verb {
			case "", "#", "by":
			case "as":
				c.as, c.runs = append(c.as, what), true
			case "prints":
				c.prints, c.runs = append(c.prints, what), true
			case "in":
				if file, words, _ := strings.Cut(what, ": "); !strings.Contains(read(t, file), words) {
					t.Errorf("%s: %s does not run it: it has no %q", line, file, words)
				}
			default:
				t.Fatalf("%s: %q", line, how)
			}
		}
		all = append(all, c)
	}
	return all, functions
}

// block is the text between two fences of a page.
var block = regexp.MustCompile("(?ms)^ *```(sh|text)\n(.*?)^ *```$")

// commandLines returns the lines of scripts, and the lines after "$ " in recordings, with their pages.
func commandLines(t *testing.T) map[string]string {
	t.Helper()
	// The gateway's own tests run the commands of its page for one machine, and those that make
	// certificates; the others need three.
	args := []string{"ls-files", "*.md", ":!codexserver/gateway", ":!.github", ":!*/testdata/*", ":!*/prompts/*"}
	pages := must.Get(exec.Command("git", args...).Output())(t)
	all := map[string]string{}
	for page := range strings.FieldsSeq(string(pages)) {
		for _, b := range block.FindAllStringSubmatch(read(t, page), -1) {
			for line := range strings.Lines(b[2]) {
				line = strings.TrimSpace(line)
				prompted, ok := strings.CutPrefix(line, "$ ")
				switch {
				case b[1] == "sh" && line != "" && line[0] != '#':
					all[line] = page
				case b[1] == "text" && ok:
					all[prompted] = page
				}
			}
		}
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	b := must.Get(os.ReadFile(path))(t)
	return string(b)
}

// TestReadme runs the commands of the README and of the documents as a newcomer does: they find the program where the
// README installs it. It fails for a command that neither it nor another test runs.
func TestReadme(t *testing.T) {
	t.Chdir("../../..") // the root of the repository
	bin, home, top := t.TempDir(), t.TempDir(), t.TempDir()
	model := providertest.New(providertest.Turn{Text: []string{"Hello."}, Repeat: true})
	defer model.Close()
	config := "model = \"m\"\nmodel_provider = \"p\"\n" +
		"[model_providers.p]\nbase_url = \"" + model.BaseURL() + "\"\nwire_api = \"chat\"\n"
	must.OK(t, os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600))
	run := func(t *testing.T, line, script string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		tmp, err := os.MkdirTemp(top, "") // the test's own has the line in its name
		must.OK(t, err)
		cmd := exec.CommandContext(ctx, "bash", "-euc", script)
		cmd.WaitDelay = time.Second // of what it started
		cmd.Env = append(os.Environ(), "GOBIN="+bin, "PATH="+bin+":"+os.Getenv("PATH"),
			"CODEX_HOME="+home, "CODEX_BIN=/no/codex", "line="+line, "tmp="+tmp)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		return string(out)
	}
	all, functions := commands(t)
	known, lines := map[string]bool{}, commandLines(t)
	for _, c := range all {
		if known[c.line] = true; lines[c.line] == "" {
			t.Errorf("no page has the command %s", c.line)
		}
		if !c.runs {
			continue
		}
		t.Run(c.line, func(t *testing.T) {
			script := c.line
			if c.as != nil {
				script = strings.Join(c.as, "\n")
			}
			out := run(t, c.line, functions+"\n"+script)
			for _, want := range c.prints {
				if !strings.Contains(out, want) {
					t.Errorf("want %q in\n%s", want, out)
				}
			}
		})
	}
	for line, page := range lines {
		if !known[line] {
			t.Errorf("%s has a command that no test runs: %s", page, line)
		}
	}
}
