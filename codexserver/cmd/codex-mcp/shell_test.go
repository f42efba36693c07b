//go:build terminal

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTerminalServer starts the server in a terminal: it prints what it is.
func TestTerminalServer(t *testing.T) {
	p := newPane(t)
	p.types("codex-mcp -engine native")
	p.until(func(screen string) bool { return strings.Contains(screen, "codex-mcp ask") }, "it says what it is")
	if screen := p.shows(); !strings.Contains(screen, "codex-mcp is an MCP server") {
		t.Errorf("the screen shows\n%s", screen)
	}
	p.types(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	p.until(func(screen string) bool { return strings.Contains(screen, `"result":{}`) }, "it serves")
	p.tmux("send-keys", "C-d")
	p.done()
	p.status(0)
}

// shells start each shell so that its prompt is "$ ".
var shells = map[string]string{
	"bash": "bash",
	"zsh":  "PS1='$ ' zsh -d",
	"fish": `fish -C "function fish_prompt; echo '$ '; end"`,
}

// TestTerminalCompletion loads the completion scripts and presses the Tab key.
func TestTerminalCompletion(t *testing.T) {
	for _, tt := range []struct{ name, shell, load string }{
		{"bash", "bash --noprofile --norc", "source /usr/share/bash-completion/bash_completion; source <(codex-mcp completion bash)"},
		{"zsh", "PS1='$ ' zsh -f", "autoload -Uz compinit; compinit -D; source <(codex-mcp completion zsh)"},
		{"fish", `fish --no-config -C "function fish_prompt; echo '$ '; end"`, "codex-mcp completion fish | source"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPane(t)
			p.types(tt.shell)
			p.done()
			p.types(tt.load)
			p.done()
			p.completes()
		})
	}
}

// TestTerminalCompletionInstalled runs the commands of docs/reference/flags.md in a home without the
// folders of the shells, and then starts each shell.
func TestTerminalCompletionInstalled(t *testing.T) {
	docs, err := os.ReadFile(filepath.Join(root, "docs", "reference", "flags.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(docs), "\n## Completion\n\n```sh\n")
	script, _, ok := strings.Cut(section, "```\n")
	if !ok {
		t.Fatal("docs/reference/flags.md has no script for the completion")
	}
	for name, shell := range shells {
		t.Run(name, func(t *testing.T) {
			p := newPane(t)
			bashrc := "source /usr/share/bash-completion/bash_completion; PS1='$ '\n"
			if err := os.WriteFile(filepath.Join(p.home, ".bashrc"), []byte(bashrc), 0o600); err != nil {
				t.Fatal(err)
			}
			install := exec.CommandContext(t.Context(), "sh", "-e", "-c", script)
			install.Env = []string{"HOME=" + p.home, "PATH=" + filepath.Join(p.home, "bin") + ":/usr/bin:/bin"}
			if out, err := install.CombinedOutput(); err != nil || len(out) > 0 {
				t.Fatalf("%v: %s", err, out)
			}
			p.types(shell)
			p.done()
			p.completes()
		})
	}
}

// completes types the beginnings of command lines and presses the Tab key.
func (p *pane) completes() {
	p.t.Helper()
	for _, complete := range []struct{ typed, want string }{
		{"codex-mcp mcp-s", "$ codex-mcp mcp-server"},
		{"codex-mcp -m o3 mcp-server --sand", "$ codex-mcp -m o3 mcp-server --sandbox"},
		{"codex-mcp ask --engine nat", "$ codex-mcp ask --engine native"},
	} {
		p.tmux("send-keys", "-l", complete.typed)
		p.await("$ " + complete.typed)
		p.tmux("send-keys", "Tab")
		p.await(complete.want)
		p.tmux("send-keys", "C-u") // bash may take ctrl-C right after a completion for nothing, until the next key
		p.done()
	}
	if screen := p.shows(); strings.Contains(screen, "not found") || strings.Contains(screen, "rror") {
		p.t.Errorf("the shell prints an error:\n%s", screen)
	}
}
