package main

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestContinuedWithoutSecrets checks which flags the line to go on with repeats: not a check, which may have keys in it, however it
// is given, and no setting that is not known to be public.
func TestContinuedWithoutSecrets(t *testing.T) {
	for line, want := range map[string]struct{ words, left string }{
		"-m m":                            {"codex-mcp ask -m m", ""},
		"--check KEY=sk-1;make":           {"codex-mcp ask", "--check"},
		"--check=KEY=sk-1":                {"codex-mcp ask", "--check"},
		"-c calls.check=\"KEY=sk-1\"":     {"codex-mcp ask", "-c calls.check"},
		"-c calls={check=\"KEY=sk-1\"}":   {"codex-mcp ask", "-c calls"},
		"-c calls.result=9999 --check x":  {"codex-mcp ask -c 'calls.result=9999'", "--check"},
		"-c shell_environment_policy.x=1": {"codex-mcp ask", "-c shell_environment_policy.x"},
	} {
		a := &askOptions{options: &options{name: "codex-mcp", line: strings.Fields(line)}}
		flags := a.commonFlags()
		flags.AddFlagSet(a.settingFlags())
		flags.StringVar(&a.lastly, "check", "", "")
		must.OK(t, flags.Parse(a.line))
		words, left := a.repeated(flags)
		must.Equal(t, line, want.words+", "+want.left, words+", "+strings.Join(left, " "))
	}
}
