package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/shellword"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/spf13/cobra"
)

// varies is what command lines print that is not the same on every system, or for every build.
var varies = []struct{ old, new string }{
	{`(?m)^(codex-mcp|version|sandbox|system|commands) {2,}.*$`, `$1 <VARIES>`},
	{`"(version|go|system|sandbox|platform)": ?("[^"]*"|\{[^}]*\})`, `"$1":"<VARIES>"`},
	{`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d[.\d]*)?(Z|[+-]\d\d:\d\d)?`, `<TIME>`},
	{`codex-mcp dev( \(|, )go.*`, `codex-mcp dev$1<BUILD>`},
	{`\b[A-Z2-7]{52}\b`, `<TOKEN>`},
	{`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`, `<UUID>`},
}

// TestGoldenLines runs the command lines in testdata/golden/*.txt: each "$ PROGRAM ARGUMENTS" is followed by what it prints, its
// exit status, and whether it printed to standard error; -update rewrites that. A line "> FILE TEXT" writes a file of CODEX_HOME,
// whose lines end with semicolons. A line "& WORDS" runs, with the words, what the line before names to go on with. At $NOBODY
// nobody listens.
func TestGoldenLines(t *testing.T) {
	for _, file := range must.Get(filepath.Glob(filepath.Join("testdata", "golden", "*.txt")))(t) {
		file = must.Get(filepath.Abs(file))(t)
		t.Run(filepath.Base(file), func(t *testing.T) {
			f, model := newFolders(t), providertest.New(providertest.Turn{Text: []string{"Hello."}, Repeat: true})
			t.Cleanup(model.Close)
			t.Chdir(f.cwd)
			for name, value := range map[string]string{"HOME": f.user, "CODEX_HOME": f.home, "PATH": f.user, "TMPDIR": "/tmp", "CODEX_BIN": ""} {
				t.Setenv(name, value)
			}
			want := string(must.Get(os.ReadFile(file))(t))
			nobody := testenv.Nobody(t)
			own := strings.NewReplacer("'"+f.cwd+"'", "$CWD", f.home, "$CODEX_HOME", f.cwd, "$CWD", f.user, "$HOME", model.BaseURL(), "$BASE_URL", nobody, "$NOBODY")
			address := strings.NewReplacer("$NOBODY", nobody, "$BASE_URL", model.BaseURL())
			var all strings.Builder
			var next []string // words, to go on with
			for line := range strings.Lines(want) {
				kind, words, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				name, words, _ := strings.Cut(words, " ")
				args := strings.Fields(address.Replace(words))
				if kind == "&" {
					name, args = "codex-mcp", append(next, name, words)
				}
				switch kind {
				case ">":
					write(t, filepath.Join(f.home, name), strings.ReplaceAll(address.Replace(words), "; ", "\n")+"\n")
					fmt.Fprintf(&all, "%s\n", line)
				case "$", "&":
					code, stdout, stderr := runLine(t, name, args...)
					if goOn := regexp.MustCompile(`continue with: codex-mcp (.*) "…"`).FindStringSubmatch(stderr); goOn != nil {
						next, _ = shellword.Split(goOn[1])
					}
					if control.MatchString(stdout + stderr) {
						t.Errorf("%sa terminal gets control characters: %q", line, stdout+stderr)
					}
					said := own.Replace(stdout + stderr)
					for _, v := range varies {
						said = regexp.MustCompile(v.old).ReplaceAllString(said, v.new)
					}
					fmt.Fprintf(&all, "%s%sexit %d%s\n\n", line, said, code, map[bool]string{true: ", standard error"}[stderr != ""])
				}
			}
			if *update {
				must.OK(t, os.WriteFile(file, []byte(all.String()), 0o644))
				return
			}
			must.Equal(t, file, want, all.String())
		})
	}
}

// control matches characters that a terminal interprets.
var control = regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u202a-\u202e\u2028\u2029]")

// TestGoldenHelp checks that help.txt has the help of every command.
func TestGoldenHelp(t *testing.T) {
	text := string(must.Get(os.ReadFile(filepath.Join("testdata", "golden", "help.txt")))(t))
	var walk func(cmd *cobra.Command, words []string)
	walk = func(cmd *cobra.Command, words []string) {
		if line := "$ codex-mcp " + strings.Join(append(words, "--help"), " ") + "\n"; !strings.Contains(text, line) {
			t.Errorf("help.txt lacks %s", line)
		}
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" {
				walk(sub, append(slices.Clone(words), sub.Name()))
			}
		}
	}
	walk((&options{name: "codex-mcp"}).commands(nil), nil)
}
