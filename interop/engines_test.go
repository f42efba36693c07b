package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// engine is what runs the turns, on a scripted model, and how clients come to it.
type engine struct {
	name, title string
	is          string   // its name on the wire
	over        way      // from the client to the server
	flags       []string // of codex-mcp
	wire        string   // the model's
	// run is the model's call of a command.
	run func(id string, argv ...string) providertest.ToolCall
	// declined is the model's text after a plain refusal.
	declined string
}

// way is how a client comes to the server.
type way int

const (
	overStdio way = iota // the client starts it
	overHTTP             // it runs, as codex-mcp http
	overProxy            // it runs, and the client starts codex-mcp --connect
)

// engines are both, the bridge on the newest Codex, and the native one over HTTP too.
func engines(t *testing.T) []engine {
	t.Helper()
	codex := newest(t)
	version, err := exec.Command(codex, "--version").Output() // "codex-cli 0.169.0"
	if err != nil {
		t.Fatalf("%s --version: %v", codex, err)
	}
	_, number, _ := strings.Cut(strings.TrimSpace(string(version)), " ")
	native := engine{"native", "`-engine native`", "native", overStdio, []string{"-engine", "native"}, "chat", providertest.Shell, "declined"}
	bridge := engine{"codex", "`-engine codex`, Codex " + number, "codex", overStdio, []string{"-engine", "codex", "-codex", codex}, "responses", execCommand, "rejected by user"}
	served, connected := native, native
	served.name, served.title, served.over = "http", "`codex-mcp http -engine native`, by its URL and token", overHTTP
	connected.name, connected.title, connected.over = "connect", "`codex-mcp --connect URL`, in front of `codex-mcp http -engine native`", overProxy
	return []engine{native, bridge, served, connected}
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
