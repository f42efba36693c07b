package interop

import (
	"os"
	"os/exec"
	"path/filepath"
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

// newest is the newest Codex that the gate installed.
func newest(t *testing.T) string {
	t.Helper()
	npm := os.Getenv("CODEX_NPM")
	bins, err := filepath.Glob(filepath.Join(npm, "codex-*", "node_modules", "@openai", "codex-linux-x64", "vendor", "*", "bin", "codex"))
	if err != nil || len(bins) == 0 {
		t.Fatalf("no Codex with an app-server in CODEX_NPM=%q (.ci/run install puts it there): %v", npm, err)
	}
	return bins[len(bins)-1]
}

// execCommand is a call of today's tool for commands.
func execCommand(id string, argv ...string) providertest.ToolCall {
	return providertest.Tool(id, "exec_command", map[string]any{"cmd": strings.Join(argv, " ")})
}
