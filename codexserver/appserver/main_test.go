package appserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	launching "github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// By its environment the test binary is another program.
const (
	// asMCPServer makes it an MCP server with one tool, which makes the file that an absolute path names.
	asMCPServer = "CODEX_TEST_MCP_SERVER"
	// asCodex makes it a codex, of the kind that the value says: fine, old, none (a version without app-server),
	// broken, untrusted (does not start with that word in its configuration), deaf (does not end by itself).
	asCodex = "CODEX_TEST_CODEX"
	// ofTest identifies the processes of a test.
	ofTest = "CODEX_TEST_RUN"
)

func TestMain(m *testing.M) {
	if os.Getenv(asCodex) == "without Main" {
		os.Exit(m.Run())
	}
	appserver.Main()
	switch {
	case filepath.Base(os.Args[0]) == "codex": // a link, as users make one to codex-mcp
		if !slices.Contains(os.Args, "--version") {
			os.Exit(2)
		}
		fmt.Println("codex-mcp 1.2.3 (go1.26, linux/amd64)")
		os.Exit(0)
	case os.Getenv(asMCPServer) != "":
		os.Exit(mcpServer())
	case os.Getenv(asCodex) != "":
		os.Exit(codex(os.Getenv(asCodex), os.Args[1:]))
	}
	// Children inherit ignored signals, as under nohup.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	for _, entry := range os.Environ() { // the developer's own
		if name, _, _ := strings.Cut(entry, "="); launching.MatchName(launching.Secrets(), name) {
			os.Unsetenv(name)
		}
	}
	os.Exit(runTests(m))
}

// programs is a folder for the programs that tests build. UserHome is the home of who runs them.
var programs, userHome string

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "codexmcp-programs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs, userHome = dir, os.Getenv("HOME")
	// An empty home, because the shell's profile runs with every command of Codex.
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "home"), 0o700), os.Setenv("HOME", filepath.Join(dir, "home"))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = flag.Set("test.parallel", "4") // most of those that are parallel wait for Codex
	return memdir.Run(m)
}

func mcpServer() int {
	mux := &jsonrpc.Mux{}
	peer := jsonrpc.NewPeer(jsonrpc.Stdio(), mux, nil)
	mux.HandleRaw("initialize", func(_ context.Context, p json.RawMessage) (any, error) {
		var asked struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		err := json.Unmarshal(p, &asked)
		return map[string]any{"protocolVersion": asked.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": map[string]any{"name": "demo", "version": "1"}}, err
	})
	mux.HandleRaw("tools/list", func(context.Context, json.RawMessage) (any, error) {
		return json.RawMessage(`{"tools":[{"name":"write_thing","description":"writes","inputSchema":{"type":"object","properties":{}},
			"annotations":{"readOnlyHint":false,"destructiveHint":true}}]}`), nil
	})
	mux.HandleRaw("tools/call", func(context.Context, json.RawMessage) (any, error) {
		if file := os.Getenv(asMCPServer); filepath.IsAbs(file) {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				return nil, err
			}
		}
		return json.RawMessage(`{"content":[{"type":"text","text":"wrote it"}]}`), nil
	})
	_ = peer.Run(context.Background())
	return 0
}

func codex(kind string, args []string) int {
	version := map[string]string{"old": "0.59.0", "none": "0.42.0"}[kind]
	if version == "" {
		version = "0.169.0"
	}
	if slices.Contains(args, "--version") {
		fmt.Println("codex-cli", version)
		return 0
	}
	switch {
	case kind == "none", len(args) == 0, args[0] != "app-server":
		fmt.Fprintln(os.Stderr, "Error: stdin is not a terminal")
		return 1
	case kind == "broken":
		fmt.Fprintln(os.Stderr, "\x1b[33mWARN\x1b[0m something else")
		fmt.Fprintln(os.Stderr, "Error: the key sk-abcdefghij is broken")
		return 1
	case kind == "untrusted" && !slices.Contains(args, `approval_policy='on-request'`):
		fmt.Fprintln(os.Stderr, `Error: approval_policy = "untrusted" is no longer supported; remove this setting`)
		return 1
	}
	cwd, err := os.Getwd() // of the test: the server looks at what is in it
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	f := &fake{version: version, home: os.Getenv("CODEX_HOME"), cwd: cwd, turn: answered, on: map[string]handler{
		// It reports the flags of its start as its configuration.
		"config/read": func(*run, *jsonrpc.Request) (any, error) {
			if kind == "environ" {
				args = os.Environ()
			}
			return map[string]any{"config": map[string]any{"model": strings.Join(args, " ")}}, nil
		},
	}}
	wire := jsonrpc.Stdio()
	r := &run{fake: f, wire: wire, n: 1}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.peer = jsonrpc.NewPeer(wire, jsonrpc.HandlerFunc(r.serve), &jsonrpc.Options{OmitVersion: true})
	if kind == "deaf" {
		f.turn = nil
		signal.Ignore()
		// A command in a session of its own, which the end of the group does not reach.
		if runtime.GOOS == "linux" {
			if err := exec.Command("setsid", "sleep", "600").Start(); err != nil {
				return 1
			}
		}
	}
	_ = r.peer.Run(r.ctx)
	if kind == "deaf" {
		select {}
	}
	return 0
}
