package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"mvdan.cc/sh/v3/shell"
)

const root = "../../.."

// TestDocsFlags compares the tables of flags in docs, and the usage in
// docs/flags.md, with what there is.
func TestDocsFlags(t *testing.T) {
	var usage bytes.Buffer
	if _, err := parse([]string{"-h"}, &usage); err == nil {
		t.Fatal("-h is no error")
	}
	want := []string{"h", "help"} // the flag package's own
	for _, m := range regexp.MustCompile(`(?m)^  -([\w-]+)`).FindAllStringSubmatch(usage.String(), -1) {
		want = append(want, m[1])
	}
	line, _, _ := strings.Cut(strings.TrimPrefix(usage.String(), "usage: "), "\n")
	var got []string
	documents(t, func(file, text string) {
		if filepath.Base(filepath.Dir(file)) != "docs" {
			return
		}
		for _, row := range regexp.MustCompile("(?m)^\\| (`-[^|]*) \\|").FindAllStringSubmatch(text, -1) {
			for name := range strings.SplitSeq(row[1], ", ") {
				name, _, _ = strings.Cut(strings.Trim(name, "`-"), " ")
				got = append(got, name)
			}
		}
		if filepath.Base(file) == "flags.md" && !strings.Contains(text, line) {
			t.Errorf("docs/flags.md lacks the line %q", line)
		}
	})
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("the flags in docs (-program +pages):\n%s", diff)
	}
}

// TestDocsCommandLines tries every command line that the documents show: in
// scripts, in lines and in the configurations of clients.
func TestDocsCommandLines(t *testing.T) {
	t.Setenv("CODEX_HOME", t.TempDir())
	tried := 0
	try := func(file string, args []string) {
		tried++
		var stderr bytes.Buffer
		o, err := parse(args, &stderr)
		if err == nil {
			_, err = configure(o, os.Getenv, slog.New(slog.DiscardHandler))
		}
		if err != nil {
			t.Errorf("%s: codex-mcp %q: %v", file, args, err)
		}
	}
	code := regexp.MustCompile("`codex-mcp( [^`]*)`|(?m)^\\$ codex-mcp( .*)?$")
	script := regexp.MustCompile("(?m)^(?:claude .* -- |npx [^-]*)?codex-mcp( .*)?$")
	var search func(file string, v any)
	search = func(file string, v any) { // for {"command": "codex-mcp", "args": […]}
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				search(file, e)
			}
		case map[string]any:
			if v["command"] == "codex-mcp" {
				args, _ := v["args"].([]any)
				var line []string
				for _, a := range args {
					line = append(line, a.(string))
				}
				try(file, line)
			}
			for _, e := range v {
				search(file, e)
			}
		}
	}
	documents(t, func(file, text string) {
		found := code.FindAllStringSubmatch(text, -1)
		for _, b := range blocks(text, "sh") {
			found = append(found, script.FindAllStringSubmatch(b, -1)...)
		}
		for _, m := range found {
			args, err := shell.Fields(strings.Join(m[1:], ""), nil)
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
			try(file, args)
		}
		for lang, unmarshal := range map[string]func([]byte, any) error{"json": json.Unmarshal, "toml": toml.Unmarshal} {
			for _, b := range blocks(text, lang) {
				var v any
				if err := unmarshal([]byte(b), &v); err != nil {
					t.Errorf("%s: %v", file, err)
				}
				search(file, v)
			}
		}
	})
	if tried < 15 {
		t.Errorf("only %d command lines found: the search is wrong", tried)
	}
}

// TestDocsConfigurations loads every TOML block as the file that it is.
func TestDocsConfigurations(t *testing.T) {
	documents(t, func(file, text string) {
		for _, b := range blocks(text, "toml") {
			var keys map[string]any
			if err := toml.Unmarshal([]byte(b), &keys); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			home, name := t.TempDir(), "config.toml"
			for key := range keys {
				if config.Ours(key) {
					name = config.SettingsFile
				}
			}
			if err := os.WriteFile(filepath.Join(home, name), []byte(b), 0o600); err != nil {
				t.Fatal(err)
			}
			_, _, err := config.LoadSettings(home, nil)
			if err == nil {
				_, err = config.Load(config.Layers{Home: home})
			}
			if err != nil {
				t.Errorf("%s: %v in\n%s", file, err, b)
			}
			if unknown := config.Unknown(home); len(unknown) > 0 {
				t.Errorf("%s: unknown keys %q", file, unknown)
			}
		}
	})
}

// blocks are the fenced blocks of a language.
func blocks(text, lang string) (all []string) {
	for _, m := range regexp.MustCompile("(?ms)^```"+lang+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// documents calls f with every Markdown file of the project.
func documents(t *testing.T, f func(file, text string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != root && (d.Name()[0] == '.' || slices.Contains([]string{"testdata", "node_modules", "dist"}, d.Name())) {
			return filepath.SkipDir
		}
		if filepath.Ext(file) != ".md" {
			return nil
		}
		b, err := os.ReadFile(file)
		f(file, string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
