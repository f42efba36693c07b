//go:build readme && unix

package house_test

import (
	"bufio"
	"context"
	"io"
	"iter"
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
	// GOFLAGS and CGO_ENABLED are as Go has them, not as the gate sets them.
	cmd.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=", "GOBIN="+n.bin, "PATH="+n.bin+":"+os.Getenv("PATH"), "CODEX_HOME="+n.home, "CODEX_BIN=/no/codex")
	return cmd
}

func save(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wants runs a line and checks that it prints the text want.
func (n *newcomer) wants(t *testing.T, line, input, want string) {
	t.Helper()
	if out := n.run(t, line, input); !strings.Contains(out, want) {
		t.Errorf("%s: want %q in\n%s", line, want, out)
	}
}

// loggedDecision returns the line of the log that the page of approvals shows.
func loggedDecision(t *testing.T) string {
	t.Helper()
	_, rest, _ := strings.Cut(read(t, "docs/approvals.md"), "```json\n{\n  \"event\": ")
	text, _, ok := strings.Cut(rest, "\n```")
	if !ok {
		t.Fatal("docs/approvals.md shows no decision")
	}
	return `{"event": ` + text
}

// newWorktree makes a repository with a worktree, as a conversation of Codex has one, and returns
// what runs a command that names it.
func newWorktree(t *testing.T, n *newcomer) func(t *testing.T, line string) {
	t.Helper()
	repository, place := t.TempDir(), filepath.Join(t.TempDir(), "worktree")
	inside := "set -e; cd '" + repository + "'; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; "
	n.run(t, inside+"git init -q; git commit -q --allow-empty -m first; git worktree add -q -b codex/1 '"+place+"'; echo done >'"+place+"/work.txt'", "")
	return func(t *testing.T, line string) {
		n.run(t, inside+strings.NewReplacer("PATH", "'"+place+"'", "BRANCH", "codex/1").Replace(line), "")
		if strings.Contains(line, "remove") {
			n.run(t, inside+"test ! -e '"+place+"' && test -z \"$(git branch --list 'codex/*')\" && grep -q done work.txt", "")
		}
	}
}

// TestReadme runs the commands of the README and of the documents from top to bottom. It fails for
// a command that neither it nor another test runs.
func TestReadme(t *testing.T) {
	n := &newcomer{bin: t.TempDir(), home: t.TempDir()}
	model := providertest.New(providertest.Turn{Text: []string{"Hello."}, Repeat: true})
	defer model.Close()
	save(t, filepath.Join(n.home, "config.toml"),
		"model = \"m\"\nmodel_provider = \"p\"\n[model_providers.p]\nbase_url = \""+model.BaseURL()+"\"\nwire_api = \"chat\"\n")
	claude := func(t *testing.T, line string) {
		// Claude Code cannot be installed in CI; test/interop/claudecode drives it by hand.
		_, command, _ := strings.Cut(line, "-- ")
		n.wants(t, command, greeting+"\n", `"serverInfo"`)
	}
	asked := func(t *testing.T, line string) { n.wants(t, line, "", "Hello.") }
	logged := func(want string) func(*testing.T, string) {
		return func(t *testing.T, line string) {
			dir := t.TempDir()
			save(t, filepath.Join(dir, "approvals.log"), loggedDecision(t)+"\n"+`{"event":"begins","kind":"command","command":["true"]}`)
			if got := n.run(t, "cd '"+dir+"' && "+line, ""); !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
				t.Errorf("%s prints\n%s", line, got)
			}
		}
	}
	merged := newWorktree(t, n)
	known := map[string]func(t *testing.T, line string){
		`jq -c 'select(.event == "decided") | {time, by, decision, command}' approvals.log`:                logged(`["touch","made.txt"]`),
		`jq -c 'select(.event == "begins" and .decisionId == null) | {time, kind, command}' approvals.log`: logged(`["true"]`),
		`jq -c 'select(.decisionId == "QF3V7LZ2MTXA-1")' approvals.log`:                                    logged(`["touch","made.txt"]`),
		`git -C PATH add --all && git -C PATH commit --message "What Codex did"`:                           merged,
		"git merge BRANCH": merged,
		"git worktree remove PATH && git branch --delete BRANCH": merged,
		"git clone https://github.com/codexmcp/codexmcp && cd codexmcp": func(t *testing.T, line string) {
			// The repository is not published, so clone this one.
			clone := filepath.Join(t.TempDir(), "codexmcp")
			n.wants(t, "git clone -q . '"+clone+"' && cd '"+clone+"' && go run ./examples/quickstart -answer decline", "", "proof: the folder is not a git repository")
		},
		"go run ./examples/quickstart -answer accept": func(t *testing.T, line string) {
			n.wants(t, line, "", "proof: the folder is now a git repository")
			line = strings.TrimSuffix(line, " -answer accept")
			n.wants(t, line, "y", "proof: the folder is now a git repository")
			n.wants(t, line, "n", "proof: the folder is not a git repository")
			n.wants(t, line, "s", "proof: the folder is not a git repository")
		},
		"go run ./codexserver/cmd/codex-mcp ask --demo": func(t *testing.T, line string) {
			n.wants(t, line, "", "This was a demo")
		},
		"go install ./codexserver/cmd/codex-mcp": func(t *testing.T, line string) {
			n.run(t, line, "")
			n.wants(t, "codex-mcp --version", "", "codex-mcp ")
			n.wants(t, "codex-mcp --help", "", "mcp-server")
		},
		"codex-mcp doctor": func(t *testing.T, line string) {
			n.wants(t, "CODEX_HOME='"+t.TempDir()+"' "+line+" || true", "", "OPENAI_API_KEY") // the key that is missing
		},
		"claude mcp add codex -- codex-mcp --approvals both": claude,
		"claude mcp add codex -- codex-mcp --approvals both --shared": func(t *testing.T, line string) {
			claude(t, line)
			n.wants(t, "codex-mcp shared stop", "", "ended ") // else it would wait for clients after the test
		},
		"npx @modelcontextprotocol/inspector codex-mcp": func(t *testing.T, line string) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			// The gate has installed the package, with the Node that it needs.
			cmd := n.command(ctx, "cd test/interop/typescript && PATH=$PWD/node_modules/.bin:$PATH MCP_AUTO_OPEN_ENABLED=false exec "+line)
			awaitLine(t, cmd, cancel, "is up and running")
		},
		"npx @modelcontextprotocol/inspector --cli codex-mcp --method tools/list": func(t *testing.T, line string) {
			n.wants(t, "cd test/interop/typescript && PATH=$PWD/node_modules/.bin:$PATH "+line, "", "codex-reply")
		},
		`codex-mcp ask "write a script that says hello, and run it"`:                            asked,
		`codex-mcp ask -a untrusted "write a script that says hello, and run it"`:               asked,
		`codex-mcp ask -a never -s read-only "explain how the tests of this repository run"`:    asked,
		`codex-mcp ask -a never -s workspace-write "fix the failing test"`:                      asked,
		`codex-mcp ask -c limits.tokens=200000 -c limits.wall_time=20m "make the tests faster"`: asked,
		`codex-mcp ask -m gpt-5 -c model_reasoning_effort=high "find the race in the cache"`:    asked,
		`codex-mcp ask --resume last "now add a test for it"`:                                   asked,
		`codex-mcp ask --approvals page "update the dependencies"`: func(t *testing.T, line string) {
			n.wants(t, line, "", "http://127.0.0.1:")
		},
		`git log -p -3 | codex-mcp ask -a never -s read-only - > summary.txt`: func(t *testing.T, line string) {
			summary := filepath.Join(t.TempDir(), "summary.txt")
			n.wants(t, strings.ReplaceAll(line, "summary.txt", summary)+" && cat "+summary, "", "Hello.")
		},
		"codex-mcp --approvals both": func(t *testing.T, line string) {
			n.wants(t, line, greeting+"\n", "http://127.0.0.1:")
		},
		"codex-mcp --engine native < request.json > answer.json": func(t *testing.T, line string) {
			dir := t.TempDir()
			save(t, filepath.Join(dir, "request.json"), greeting)
			n.wants(t, "cd '"+dir+"' && "+line+" && cat answer.json", "", `"serverInfo"`)
		},
		"codex-mcp -c model=gpt-5 -c 'sandbox_workspace_write.writable_roots=[\"/data\"]' -c approvals.timeout=30s": func(t *testing.T, line string) {
			n.wants(t, line, greeting+"\n", `"serverInfo"`)
		},
		"codex-mcp --version":         func(t *testing.T, line string) { n.wants(t, line, "", "codex-mcp ") },
		"codex-mcp rules":             func(t *testing.T, line string) { n.run(t, line, "") },
		"codex-mcp http --show-token": func(t *testing.T, line string) { n.wants(t, line, "", "Bearer ") },
		"codex-mcp http": func(t *testing.T, line string) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			awaitLine(t, n.command(ctx, line), cancel, "serving MCP at http://127.0.0.1:4517/mcp")
		},
	}
	seen := map[string]bool{}
	for _, c := range commandLines(t) {
		// The gateway's own tests run the commands of its page for one machine, and those that make certificates; the others need three.
		if c.page == "codexserver/gateway/README.md" || seen[c.line] {
			continue
		}
		seen[c.line] = true
		place, ok := elsewhere[c.line]
		run := known[c.line]
		switch {
		case run != nil:
			t.Run(c.line, func(t *testing.T) { run(t, c.line) })
		case ok && !strings.Contains(read(t, place[0]), place[1]):
			t.Errorf("%s: %s: %s does not run it: it has no %q", c.page, c.line, place[0], place[1])
		case !ok && byHand[c.line] == "":
			t.Errorf("%s has a command that no test runs: %s", c.page, c.line)
		}
	}
	for _, lines := range []iter.Seq[string]{maps.Keys(known), maps.Keys(elsewhere), maps.Keys(byHand)} {
		for line := range lines {
			if !seen[line] {
				t.Errorf("no page has the command %s", line)
			}
		}
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
