package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// keptRules adds two rules to a home.
func keptRules(t *testing.T, home string) {
	t.Helper()
	s := rulefile.New(home, nil)
	for _, k := range []rulefile.Kept{
		{Rule: rulefile.Rule{Exact: []string{"go", "test"}, Folder: "/work"}, By: "client"},
		{Rule: rulefile.Rule{Exact: []string{"touch", "x"}, Folder: "/work\x1b[2J"}, By: "page", Principal: "ann"},
	} {
		must.Get(s.Add(k))(t)
	}
}

func TestRules(t *testing.T) {
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	for _, tt := range []struct {
		args   string
		status int
		want   []string // lines that contain this, in order
	}{
		{"rules", 0, []string{"no rules were accepted"}},
		{"rules remove 1", 1, []string{"there is no rule 1"}},
		{"ADD", 0, nil},
		{"rules add", 2, []string{"want the beginning of commands"}},
		{"rules add -- gofmt -l", 0, []string{"3  commands that begin with `gofmt -l` in every folder, in the sandbox"}},
		{"rules", 0, []string{
			"1  exactly `go test` in /work, in the sandbox", "by the client",
			"2  exactly `touch x` in '/work', in the sandbox", "by the page of ann",
			"3  commands that begin with `gofmt -l` in every folder, in the sandbox", "by the command",
		}},
		{"rules --json", 0, []string{`"number":1,"exact":["go","test"]`, `"number":2`, `"number":3,"prefix":["gofmt","-l"]`}},
		{"rules remove x", 2, []string{"want the number of a rule"}},
		{"rules lost", 2, []string{"lost"}},
		{"rules remove 1", 0, nil},
		{"BREAK", 0, nil},
		{"rules", 1, []string{"rules.json"}},
		{"rules add -- ls", 1, []string{"rules.json"}},
		{"rules remove 2", 1, []string{"rules.json"}},
	} {
		switch tt.args {
		case "ADD":
			keptRules(t, home)
			continue
		case "BREAK":
			must.OK(t, os.Truncate(rulefile.New(home, nil).Path(), 30))
			continue
		}
		status, stdout, stderr := runLine(t, "codex-mcp", strings.Fields(tt.args)...)
		text := stdout + stderr
		if status != tt.status || control.MatchString(text) {
			t.Errorf("%s: status %d, want %d:\n%q", tt.args, status, tt.status, text)
		}
		rest := text
		for _, want := range tt.want {
			_, after, found := strings.Cut(rest, want)
			if !found {
				t.Errorf("%s: no %q in\n%s", tt.args, want, text)
				break
			}
			rest = after
		}
	}
}

// control matches characters that a terminal interprets.
var control = regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u202a-\u202e\u2028\u2029]")
