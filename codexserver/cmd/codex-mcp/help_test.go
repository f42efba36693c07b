package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/pflag"
)

var flagLine = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`)

// TestHelpFits checks that the help of each command fits a terminal of 100 columns.
func TestHelpFits(t *testing.T) {
	for _, line := range []string{
		"--help", "mcp-server --help", "http --help", "ask --help", "tasks --help", "doctor --help", "completion --help", "help flags", "help help",
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), "codex-mcp", strings.Fields(line), &stdout, &stderr); code != 0 || stdout.Len() == 0 {
			t.Errorf("%s: exit status %d: %s", line, code, &stderr)
		}
		for text := range strings.Lines(stdout.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(text, "\n")); n > 100 {
				t.Errorf("%s: %d columns: %s", line, n, text)
			}
		}
	}
}

// TestHelpShowsFlags checks that the help shows the flags that most users need, and help
// flags every flag.
func TestHelpShowsFlags(t *testing.T) {
	help := func(line string) (flags []string) {
		var stdout, stderr bytes.Buffer
		run(t.Context(), "codex-mcp", strings.Fields(line), &stdout, &stderr)
		for _, m := range flagLine.FindAllStringSubmatch(stdout.String(), -1) {
			flags = append(flags, m[1])
		}
		if line != "help flags" && !strings.Contains(stdout.String(), "codex-mcp help flags") {
			t.Errorf("%s does not mention help flags:\n%s", line, &stdout)
		}
		return flags
	}
	const want = "approvals ask-for-approval cd codex config connect demo engine help model sandbox shared version"
	if got := strings.Join(help("--help"), " "); got != want {
		t.Errorf("--help shows %s, want %s", got, want)
	}
	if got := strings.Join(help("tasks --help"), " "); got != "follow help json approvals codex config engine version" {
		t.Errorf("tasks --help shows %s", got)
	}
	all := map[string]bool{}
	for _, name := range help("help flags") {
		all[name] = true
	}
	root := (&options{name: "codex-mcp"}).commands()
	for _, cmd := range append(root.Commands(), root) {
		for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) {
				if !f.Hidden && f.Name != "help" && !all[f.Name] {
					t.Errorf("help flags lacks --%s of %s", f.Name, cmd.CommandPath())
				}
			})
		}
	}
}
