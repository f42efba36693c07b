package decide_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/internal/shellword"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestWritten shows one plain command without its shell, and everything else whole.
func TestWritten(t *testing.T) {
	words := func(w ...string) []string { return w }
	for script, want := range map[string][]string{
		"npm publish":                          words("npm", "publish"),
		"\n  npm\tpublish ;\n":                 words("npm", "publish"),
		"npm \\\npublish":                      words("npm", "publish"),
		`git commit -m "it's \"so\"" ''  'é' `: words("git", "commit", "-m", `it's "so"`, "", "é"),
		`echo a\ b 'c\d' A=b`:                  words("echo", "a b", `c\d`, "A=b"),
		"bash -c 'rm x'":                       words("bash", "-c", "rm x"),
		"":                                     nil, "A=b npm publish": nil, "npm publish && rm x": nil, "npm publish | sh": nil, "npm publish; rm x": nil, "npm publish\nrm x": nil,
		"npm publish > x": nil, "npm publish &": nil, "! npm publish": nil, "npm publish # x": nil, "npm $X": nil, "npm `x`": nil, "npm \"$(x)\"": nil,
		"npm *": nil, "npm ~": nil, "npm {a,b}": nil, "npm $'a'": nil, "npm a'b'": nil, "'npm' x": nil, "(npm x)": nil, "time npm x": nil, "npm x\r": nil,
		"npm x\x00": nil, "npm =ls": nil, "npm 'x": nil,
	} {
		for _, shell := range []string{"bash", "/bin/bash", "zsh", "/usr/bin/sh"} {
			argv := words(shell, "-lc", script)
			if want == nil {
				must.Equal(t, fmt.Sprintf("%q", argv), fmt.Sprintf("%q", argv), fmt.Sprintf("%q", decide.Written(argv)))
			} else {
				must.Equal(t, fmt.Sprintf("%q", argv), fmt.Sprintf("%q", want), fmt.Sprintf("%q", decide.Written(argv)))
			}
		}
	}
	for _, argv := range [][]string{
		nil, {}, {"npm", "publish"}, {"/tmp/bash", "-lc", "npm publish"}, {"./sh", "-c", "npm publish"}, {"fish", "-c", "npm publish"}, {"-bash", "-c", "npm publish"},
		{"bash", "-c", "npm publish", "x"}, {"bash", "-ic", "npm publish"}, {"bash", "npm publish"}, {"env", "bash", "-c", "npm publish"}, {"bash", "-c", strings.Repeat("x ", decide.MaxScript)},
	} {
		must.Equal(t, fmt.Sprintf("%.80q", argv), fmt.Sprintf("%q", argv), fmt.Sprintf("%q", decide.Written(argv)))
	}
}

// FuzzWritten checks that a shell passes to a program the words that are shown, from the script as from what is shown.
func FuzzWritten(f *testing.F) {
	testenv.NeedsUnix(f, testenv.Quotes)
	testenv.NeedsPrograms(f, "bash", "sh")
	for _, text := range []string{
		"a b", `'a b' "c d" e\ f`, `"" ''`, `"\$x \` + "`" + ` \" \\ \n"`, `a\\b \'`, "é \u00a0 \u2028", "\xff\xfe", "a\vb\fc", "\\\n a", `'a
b'`, "a=b =c", "a!b ^", "-- -x +x", "%s %", "a#b", `"a'b"`, "a^b", "\u202e", "a;", "\\\t", `a\`, "]", "1>2", "2>&1", "{}", "!", "a@(b)", "a+(b)", "$", "a$", `"$"`, "a:~b", "\\~", "<(x)",
	} {
		f.Add(text)
	}
	const begins = `printf '%s\0' x `
	f.Fuzz(func(t *testing.T, text string) {
		for _, shell := range []string{"bash", "sh"} {
			words := decide.Written([]string{shell, "-c", begins + text})
			if words[0] != "printf" {
				continue
			}
			want := strings.Join(words[2:], "\x00") + "\x00"
			for _, script := range []string{begins + text, shellword.Join(words)} {
				c := exec.Command(must.Get(exec.LookPath(shell))(t), "-c", script)
				c.Dir, c.Env = t.TempDir(), []string{"PATH="}
				if got, err := c.Output(); err != nil || string(got) != want {
					t.Fatalf("%s: %q is shown as %q and has %q, %v", shell, script, words, got, err)
				}
			}
		}
	})
}
