//go:build readme && unix

package house_test

import (
	"bufio"
	"context"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// newcomer follows the README: its commands find the program where the README installs it.
type newcomer struct {
	bin, home string
}

// run runs a line of the README in a shell and returns what it prints.
func (n *newcomer) run(t *testing.T, line, input string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := n.command(ctx, line)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

func (n *newcomer) command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Env = append(os.Environ(), "GOBIN="+n.bin, "PATH="+n.bin+":"+os.Getenv("PATH"), "CODEX_HOME="+n.home, "CODEX_BIN=/no/codex")
	return cmd
}

// wants runs a line and checks that it prints the text want.
func (n *newcomer) wants(t *testing.T, line, input, want string) {
	t.Helper()
	if out := n.run(t, line, input); !strings.Contains(out, want) {
		t.Errorf("%s: want %q in\n%s", line, want, out)
	}
}

// TestReadme runs the commands of the README and of the clients from top to bottom. It fails
// for a command that it does not know.
func TestReadme(t *testing.T) {
	n := &newcomer{bin: t.TempDir(), home: t.TempDir()}
	known := map[string]func(t *testing.T, line string){
		"git clone https://github.com/codexmcp/codexmcp && cd codexmcp": func(t *testing.T, line string) {
			// The repository is not published, so clone this one.
			clone := filepath.Join(t.TempDir(), "codexmcp")
			n.wants(t, "git clone -q . '"+clone+"' && cd '"+clone+"' && go run ./examples/quickstart -answer decline", "", "proof: the folder is not a git repository")
		},
		"go run ./examples/quickstart -answer accept": func(t *testing.T, line string) {
			n.wants(t, line, "", "proof: the folder is now a git repository")
			line = strings.TrimSuffix(line, " -answer accept")
			n.wants(t, line, "accept\n", "proof: the folder is now a git repository")
			n.wants(t, line, "decline\n", "proof: the folder is not a git repository")
			n.wants(t, line, "cancel\n", "proof: the folder is not a git repository")
		},
		"go test ./...": func(*testing.T, string) {}, // the gate's step test is this line
		"go run ./codexserver/cmd/codex-mcp ask --demo": func(t *testing.T, line string) {
			n.wants(t, line, "", "This was a demo")
		},
		"go install ./codexserver/cmd/codex-mcp": func(t *testing.T, line string) {
			n.run(t, line, "")
			n.wants(t, "codex-mcp --version", "", "codex-mcp ")
			n.wants(t, "codex-mcp --help", "", "mcp-server")
		},
		"codex-mcp doctor": func(t *testing.T, line string) {
			n.wants(t, line+" || true", "", "OPENAI_API_KEY") // the key that is missing
		},
		"claude mcp add codex -- codex-mcp": func(t *testing.T, line string) {
			// Claude Code cannot be installed in CI; interop/claudecode drives it by hand.
			_, command, _ := strings.Cut(line, "-- ")
			n.wants(t, command, greeting+"\n", `"serverInfo"`)
		},
		"npx @modelcontextprotocol/inspector codex-mcp": func(t *testing.T, line string) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			// The gate has installed the package, with the Node that it needs.
			cmd := n.command(ctx, "cd interop/typescript && PATH=$PWD/node_modules/.bin:$PATH MCP_AUTO_OPEN_ENABLED=false exec "+line)
			awaitLine(t, cmd, cancel, "is up and running")
		},
		"npx @modelcontextprotocol/inspector --cli codex-mcp --method tools/list": func(t *testing.T, line string) {
			n.wants(t, "cd interop/typescript && PATH=$PWD/node_modules/.bin:$PATH "+line, "", "codex-reply")
		},
		`codex-mcp ask "write a script that says hello, and run it"`: func(t *testing.T, line string) {
			model := providertest.New(providertest.Say("Hello."))
			defer model.Close()
			config := "model = \"m\"\nmodel_provider = \"p\"\n[model_providers.p]\nbase_url = \"" + model.BaseURL() + "\"\nwire_api = \"chat\"\n"
			if err := os.WriteFile(filepath.Join(n.home, "config.toml"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			n.wants(t, line, "", "Hello.")
		},
	}
	unused := maps.Clone(known)
	for _, file := range []string{"README.md", "docs/clients.md", "docs/hosts/claude-code.md"} {
		for _, block := range fence.FindAllStringSubmatch(read(t, file), -1) {
			if block[1] != "sh" {
				continue
			}
			for line := range strings.Lines(block[2]) {
				line = strings.TrimSpace(line)
				run := known[line]
				if run == nil {
					t.Errorf("%s has a command that this test does not run: %s", file, line)
					continue
				}
				if _, first := unused[line]; first {
					t.Run(line, func(t *testing.T) { run(t, line) })
				}
				delete(unused, line)
			}
		}
	}
	for line := range unused {
		t.Errorf("no page has the command %s", line)
	}
}

// greeting is the first request of a session.
const greeting = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`

// awaitLine starts a command that does not end, and calls end when it has printed the words.
func awaitLine(t *testing.T, cmd *exec.Cmd, end func(), words string) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // npx has children
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { w.CloseWithError(cmd.Wait()) }()
	var output strings.Builder
	found := false
	for s := bufio.NewScanner(r); s.Scan(); {
		output.WriteString(s.Text() + "\n")
		if strings.Contains(s.Text(), words) {
			found = true
			end()
		}
	}
	if !found {
		t.Errorf("want %q in\n%s", words, output.String())
	}
}
