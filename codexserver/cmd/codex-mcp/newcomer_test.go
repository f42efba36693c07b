package main

import (
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestNewcomer plays the first minutes of a newcomer with a fresh program: tasks, and the demo.
// TestDoctorCauses has what may be in their way. The step readme installs the program.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	f, _ := prepare(t, "untrusted", providertest.Turn{Text: []string{"Hello."}, Repeat: true})
	tmp := t.TempDir()
	for words, wants := range map[string][]string{
		"ask --demo": {
			"codex-mcp: demo: ", "There is no terminal to ask on", "note: not applied: ", "note: not run: mkdir greetings", "note: not run: rm hello.txt", "This was a demo",
			"-s workspace-write", "codex-mcp.toml", "--approvals page", "Next: codex-mcp doctor", "README.md says how to install codex-mcp.",
		},
		"ask hello":        {"\nHello.\n", "continue with: codex-mcp ask --resume "},
		"ask":              {"\nHello.\n"}, // with a task on standard input
		"ask --json hello": {`{"type":"session_configured",`, `,"text":"Hello.","isError":false}`},
		"completion bash":  {"complete -o default -F __start_codex-mcp codex-mcp"},
	} {
		cmd := f.command(t.Context(), built(t), strings.Fields(words)...)
		cmd.Stdin, cmd.Env = strings.NewReader("why?\n"), append(cmd.Env, "CODEX_BIN=/no/codex", "TMPDIR="+tmp, "PATH="+f.user) // no codex-mcp is installed there
		out, err := cmd.CombinedOutput()
		if words == "ask --demo" && cmd.ProcessState.ExitCode() == 1 { // nobody decides
			err = nil
		} else if words == "ask --demo" {
			t.Errorf("a demo without a terminal ended with %v", err)
		}
		for _, want := range wants {
			if err != nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "\x1b") {
				t.Errorf("codex-mcp %s: %v, no %q in\n%s", words, err, want, out)
			}
		}
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("codex-mcp %s leaves %v, %v", words, left, err)
		}
	}
}
