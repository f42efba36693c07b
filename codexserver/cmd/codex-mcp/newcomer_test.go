package main

import (
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestNewcomer plays the first minutes of a newcomer with a fresh program: tasks, and the demo, which needs a terminal.
// TestDoctorCauses has what may be in their way. The step readme installs the program.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	f, _ := prepare(t, "untrusted", providertest.Turn{Text: []string{"Hello."}, Repeat: true})
	tmp := t.TempDir()
	for words, wants := range map[string][]string{
		"ask hello":        {"\nHello.\n", "continue with: codex-mcp ask --resume "},
		"ask":              {"\nHello.\n"}, // with a task on standard input
		"ask --json hello": {`{"type":"session_configured",`, `,"text":"Hello.","isError":false}`},
		"completion bash":  {"complete -o default -F __start_codex-mcp codex-mcp"},
	} {
		cmd := f.command(t.Context(), built(t), strings.Fields(words)...)
		cmd.Stdin, cmd.Env = strings.NewReader("why?\n"), append(cmd.Env, "CODEX_BIN=/no/codex", "TMPDIR="+tmp, "PATH="+f.user) // no codex-mcp is installed there
		out, err := cmd.CombinedOutput()
		for _, want := range wants {
			if err != nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "\x1b") {
				t.Errorf("codex-mcp %s: %v, no %q in\n%s", words, err, want, out)
			}
		}
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("codex-mcp %s leaves %v, %v", words, left, err)
		}
	}
	cmd := f.command(t.Context(), built(t), "ask", "--demo")
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	out, err := cmd.CombinedOutput()
	left, _ := os.ReadDir(tmp) // it is there
	if cmd.ProcessState.ExitCode() != 1 || strings.Count(string(out), "\n") != 2 || !strings.Contains(string(out), "run it in a terminal") || len(left) > 0 {
		t.Errorf("the demo without a terminal: %v, %v\n%s", err, left, out)
	}
}
