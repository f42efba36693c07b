package main

import (
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/pelletier/go-toml/v2"
	"mvdan.cc/sh/v3/shell"
)

const root = "../../.."

// TestDocsCommandLines tries every command line that the documents show: in
// scripts, in lines and in the configurations of clients.
func TestDocsCommandLines(t *testing.T) {
	t.Setenv("CODEX_HOME", t.TempDir())
	tried := 0
	try := func(file string, args []string) {
		tried++
		o, err := parse("codex-mcp", args, io.Discard)
		if err == nil {
			_, err = configure(o, os.Getenv, slog.New(slog.DiscardHandler))
		}
		if err != nil {
			t.Errorf("%s: codex-mcp %q: %v", file, args, err)
		}
	}
	code := regexp.MustCompile("`codex-mcp( [^`]*)`|(?m)^\\$ codex-mcp( .*)?$")
	script := regexp.MustCompile("(?m)^(?:claude .* -- |npx [^-]*)?codex-mcp( .*)?$")
	redirections := regexp.MustCompile(`( [<>] \S+)+$`)
	set := map[string]string{"URL": "http://127.0.0.1:4517/mcp", "thread": "01a20548-b8e0-71f7-af80-361ba2d9c50d"} // what a page sets before
	var search func(file string, v any)
	search = func(file string, v any) { // for {"command": "codex-mcp", "args": […]}
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				search(file, e)
			}
		case map[string]any:
			if v["command"] == "codex-mcp" {
				try(file, strs(v["args"]))
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
			args, err := shell.Fields(redirections.ReplaceAllString(strings.Join(m[1:], ""), ""), func(name string) string { return set[name] })
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
			try(file, args)
		}
		for _, v := range values(t, file, text) {
			search(file, v)
		}
	})
	if tried < 15 {
		t.Errorf("only %d command lines found: the search is broken", tried)
	}
}

// TestDocsConfigurations loads every TOML block as config.toml or codex-mcp.toml.
func TestDocsConfigurations(t *testing.T) {
	documents(t, func(file, text string) {
		for _, b := range blocks(text, "toml") {
			var keys map[string]any
			if err := toml.Unmarshal([]byte(b), &keys); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			if keys["nats"] != nil || keys["worker"] != nil { // of a file of the gateway, whose own test reads it
				continue
			}
			home, name := t.TempDir(), "config.toml"
			for key, value := range keys {
				if _, table := value.(map[string]any); config.Ours(key) || key == "notify" && table {
					name = config.SettingsFile
				}
			}
			write(t, filepath.Join(home, name), b)
			_, _, err := config.LoadSettings(home, nil)
			if err == nil {
				for _, key := range config.Unknown(home, nil, false) {
					t.Errorf("%s: unknown key %s", file, key)
				}
				_, err = config.Load(config.Layers{Home: home})
			}
			if err != nil {
				t.Errorf("%s: %v in\n%s", file, err, b)
			}
		}
	})
}

// TestHosts checks the configuration of each host in testdata/hosts.json: it has the members that the host's documentation
// names, of which a ! marks those that it needs, starts the server, and also asks on the page. docs/hosts.md says the same.
func TestHosts(t *testing.T) {
	raw := must.Get(os.ReadFile(filepath.Join("testdata", "hosts.json")))(t)
	var hosts []struct {
		Host, File, Members string
		At                  []string
		Shown               bool // the page has it whole
		Set                 any
	}
	must.OK(t, json.Unmarshal(raw, &hosts))
	text := must.Get(os.ReadFile(filepath.Join(root, "docs", "hosts.md")))(t)
	shown := map[string]bool{} // the blocks of the page
	for _, v := range values(t, "docs/hosts.md", string(text)) {
		shown[normal(t, v)] = true
	}
	for _, h := range hosts {
		server := h.Set
		for _, name := range h.At {
			if list, is := server.([]any); is {
				server = list[0]
			} else {
				server = server.(map[string]any)[name]
			}
		}
		members := server.(map[string]any)
		unknown := maps.Clone(members)
		for name := range strings.FieldsSeq(h.Members) {
			name, needed := strings.CutSuffix(name, "!")
			if needed && members[name] == nil {
				t.Errorf("%s: there is no %s", h.Host, name)
			}
			delete(unknown, name)
		}
		if len(unknown) > 0 {
			t.Errorf("%s: its documentation does not name %v", h.Host, unknown)
		}
		line := strs(members["command"], members["args"])
		asks := func(override string) bool {
			return override == "approvals.where=both" || override == "approvals.where=page"
		}
		if o, err := parse(line[0], line[1:], io.Discard); err != nil || line[0] != "codex-mcp" || !slices.ContainsFunc(o.overrides, asks) {
			t.Errorf("%s: %q: %v, or it does not ask on the page", h.Host, line, err)
		}
		if h.Shown && !shown[normal(t, h.Set)] || h.Host != "Claude Code" && !strings.Contains(string(text), "`"+h.File+"`") {
			t.Errorf("%s: docs/hosts.md does not show its configuration, or does not name %s", h.Host, h.File)
		}
	}
	if len(hosts) != 12 {
		t.Errorf("%d hosts", len(hosts))
	}
}

// strs returns words, and those of lists.
func strs(of ...any) (all []string) {
	for _, v := range of {
		switch v := v.(type) {
		case string:
			all = append(all, v)
		case []any:
			all = append(all, strs(v...)...)
		}
	}
	return all
}

// normal returns a value as JSON that does not depend on its source.
func normal(t *testing.T, v any) string {
	t.Helper()
	text := must.Get(json.Marshal(v))(t)
	return string(text)
}

// values returns what the blocks of JSON and TOML of a page are.
func values(t *testing.T, file, text string) (all []any) {
	t.Helper()
	for lang, unmarshal := range map[string]func([]byte, any) error{"json": json.Unmarshal, "toml": toml.Unmarshal} {
		for _, b := range blocks(text, lang) {
			var v any
			if err := unmarshal([]byte(b), &v); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			all = append(all, v)
		}
	}
	return all
}

// blocks returns the fenced blocks of a language.
func blocks(text, lang string) (all []string) {
	for _, m := range regexp.MustCompile("(?ms)^```"+lang+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// documents calls f with every Markdown file of the project.
func documents(t *testing.T, f func(file, text string)) {
	t.Helper()
	must.OK(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
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
	}))
}
