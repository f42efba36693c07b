package interop

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// engine is what runs the turns, on a scripted model.
type engine struct {
	name, title string
	flags       []string // of codex-mcp
	wire        string   // the model's
	// run is the model's call of a command.
	run func(id string, argv ...string) providertest.ToolCall
	// declined is what the model is told of a plain refusal.
	declined string
}

// engines are both, the bridge on the newest Codex.
func engines(t *testing.T) []engine {
	t.Helper()
	codex := newest(t)
	version, err := exec.Command(codex, "--version").Output() // "codex-cli 0.169.0"
	if err != nil {
		t.Fatalf("%s --version: %v", codex, err)
	}
	_, number, _ := strings.Cut(strings.TrimSpace(string(version)), " ")
	return []engine{
		{"native", "`-engine native`", []string{"-engine", "native"}, "chat", providertest.Shell, "declined"},
		{"codex", "`-engine codex`, Codex " + number, []string{"-engine", "codex", "-codex", codex}, "responses", execCommand, "rejected by user"},
	}
}

// execCommand is a call of today's tool for commands.
func execCommand(id string, argv ...string) providertest.ToolCall {
	return providertest.Tool(id, "exec_command", map[string]any{"cmd": strings.Join(argv, " ")})
}
