package interop

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// engine is what runs the turns, on a scripted model, and how clients reach it.
type engine struct {
	name  string
	is    string   // its name on the wire
	over  way      // from the client to the server
	flags []string // of codex-mcp
	wire  string   // the model's
	// run is the model's call of a command.
	run func(id string, argv ...string) providertest.ToolCall
	// declined is the model's text after a plain refusal.
	declined string
}

// way is how a client reaches the server.
type way int

const (
	overStdio  way = iota // the client starts it
	overHTTP              // it runs, as codex-mcp http
	overShared            // the client starts codex-mcp --shared, a relay to a server that outlives the client
)

// by returns the engine with another way to it.
func (e engine) by(over way, name string) engine {
	e.over, e.name = over, name
	return e
}

// open returns what a client needs to reach the engine, with more flags for the server.
// A server that the client does not start ends with the test.
func (e engine) open(t *testing.T, server []string, home, cwd string, flags ...string) setup {
	t.Helper()
	s := setup{Cwd: cwd, Env: map[string]string{"PATH": os.Getenv("PATH"), "HOME": home, "CODEX_HOME": home, "TERM": "xterm"}}
	flags = slices.Concat(e.flags, flags)
	if e.over == overStdio {
		s.Command = slices.Concat(server, flags)
		return s
	}
	if e.over == overShared {
		s.Command = slices.Concat(server, flags, []string{"--shared"})
		stopShared(t, server, home)
		return s
	}
	s.remote = serveHTTP(t, server, home, append(flags, "-c", `http.unlocked_arguments=["approval-policy","sandbox"]`)...)
	return s
}

// engines returns both, the bridge on the newest Codex, each with the ways to it.
func engines(t *testing.T) []engine {
	t.Helper()
	codex := newest(t)
	native := engine{"native", "native", overStdio, []string{"--engine", "native"}, "chat", providertest.Shell, "declined"}
	bridge := engine{"codex", "codex", overStdio, []string{"--engine", "codex", "--codex", codex}, "responses", execCommand, "rejected by user"}
	return []engine{
		native, bridge,
		native.by(overHTTP, "http"),
		bridge.by(overHTTP, "http-codex"),
	}
}

// newest returns the path of the newest Codex that the gate installed.
func newest(t *testing.T) string {
	t.Helper()
	npm := os.Getenv("CODEX_NPM")
	bins, err := filepath.Glob(filepath.Join(npm, "codex-*", "node_modules", "@openai", "codex-linux-x64", "vendor", "*", "bin", "codex"))
	if err != nil || len(bins) == 0 {
		t.Fatalf("no Codex with an app-server in CODEX_NPM=%q (.ci/run install puts it there): %v", npm, err)
	}
	return bins[len(bins)-1]
}

// execCommand returns a call of today's tool for commands.
func execCommand(id string, argv ...string) providertest.ToolCall {
	return providertest.Tool(id, "exec_command", map[string]any{"cmd": strings.Join(argv, " ")})
}
