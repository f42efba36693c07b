//go:build terminal

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// aScreen is a command that a person types, and what the person does until the shell is back.
type aScreen struct {
	name  string
	turns []providertest.Turn
	types string
	does  func(p *pane)
}

var screens = []aScreen{
	{
		"a command that is approved", []providertest.Turn{
			{Reasoning: []string{"A fresh folder needs a repository."}, Text: []string{"I make the repository first, and then I look at what is in it."}, ToolCalls: gitInit.ToolCalls},
			providertest.Say("The repository is there, and it is empty."),
		},
		`codex-mcp ask -a untrusted "make a repository"`,
		func(p *pane) { p.press("Allow codex-mcp to run `git init -q`", "y") },
	},
	{
		"a command that is denied", []providertest.Turn{gitInit, providertest.Say("I made nothing.")},
		`codex-mcp ask -a untrusted "make a repository"`,
		func(p *pane) {
			p.press("Allow codex-mcp to run `git init -q`", "n")
		},
	},
	{
		"a question that the page answers", []providertest.Turn{gitInit, providertest.Say("The repository is there.")},
		`codex-mcp ask -a untrusted --approvals page "make a repository"`,
		func(p *pane) {
			p.press("Allow codex-mcp to run `git init -q`", "d")
			p.await("  reason for the agent:")
			v := visit(p.t, regexp.MustCompile(`http://127\S+`).FindString(p.shows("-J")))
			v.answer(v.await("open").ID, `{"action":"accept"}`)
		},
	},
	{
		"a patch", []providertest.Turn{
			providertest.Call(providertest.Tool("p", "apply_patch", map[string]any{"input": "*** Begin Patch\n" +
				"*** Update File: hello.sh\n@@\n #!/bin/sh\n-echo hello\n+# Greets whoever runs it, by the name that the system has for the user, and in the language of the user.\n+echo \"hello, ${USER:-you}\"\n" +
				"*** Add File: docs/hello.md\n+# hello\n*** End Patch\n"})),
			providertest.Say("`hello.sh` greets its user now."),
		},
		`codex-mcp ask "greet me by my name"`,
		func(p *pane) { p.press("Allow codex-mcp to apply proposed code changes", "y") },
	},
	{
		"a long command", []providertest.Turn{
			providertest.Call(providertest.Shell("c", "printf", "%s\n", "the first words of an argument that is far longer than a line of any terminal", "--and-an-option=that/is/a/path/without/a/single/space/and/so/cannot/be/broken/between/two/words/at/any/place", "the end")),
			providertest.Call(providertest.Shell("d", "bash", "-lc", "for word in one two; do\n  echo \"$word\"\ndone")),
			providertest.Say("Both ran."),
		},
		`codex-mcp ask -a untrusted "print"`,
		func(p *pane) {
			p.press("Allow codex-mcp to run `printf", "y")
			p.press("Allow codex-mcp to run this script", "y")
		},
	},
	{
		"a message in Markdown", []providertest.Turn{{Text: []string{
			"# What I found\n\nThe tests fail because `sum` reads **one line too few**: the file has no newline at its ", "end, and the loop ends before the last line.\n\n",
			"- `sum.go` reads lines\n- `sum_test.go` has a file without a newline at its end, which is the only one of its kind in the whole repository\n\n```go\nfor s.Scan() {\n\ttotal += atoi(s.Text())\n}\n```\n\nDone.\n",
		}}},
		`codex-mcp ask "why do the tests fail?"`, func(*pane) {},
	},
	{
		"the demo", nil, `codex-mcp ask --demo`,
		func(p *pane) {
			p.press("Allow codex-mcp to apply proposed code changes", "y")
			p.press("Allow codex-mcp to run `mkdir greetings`", "y")
			p.press("Allow codex-mcp to run `rm hello.txt`", "n")
		},
	},
}

// TestTerminalScreens has what a person sees in terminals of 80 and of 120 columns; -update writes the files.
func TestTerminalScreens(t *testing.T) {
	for _, columns := range []int{80, 120} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			p := newPaneOf(t, columns)
			p.configure(strings.NewReplacer(`approval_policy = "untrusted"`, "", `sandbox_mode = "danger-full-access"`, "")) // the defaults
			var all strings.Builder
			for _, s := range screens {
				if err := os.WriteFile(filepath.Join(p.home, "hello", "hello.sh"), []byte("#!/bin/sh\necho hello\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				p.model.Reset(spending(s.turns...)...)
				p.clear()
				p.types(s.types)
				s.does(p)
				p.done()
				text := p.recording()
				for line := range strings.Lines(text) {
					if got := len([]rune(strings.TrimRight(line, "\n"))); got > columns {
						t.Errorf("%s: a line has %d columns: %s", s.name, got, line)
					}
				}
				fmt.Fprintf(&all, "== %s\n%s\n", s.name, text)
			}
			goldenText(t, fmt.Sprintf("screens-%d.txt", columns), all.String())
		})
	}
}
