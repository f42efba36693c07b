package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// prepare installs Claude Code into the cache, builds codex-mcp into out unless
// a program is named, and looks for tmux.
func prepare(ctx context.Context, cache, server, out string) (programs, error) {
	if _, err := exec.LookPath("tmux"); err != nil {
		return programs{}, err
	}
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return programs{}, err
		}
		cache = filepath.Join(user, "codexmcp-claude")
	}
	cache, err := filepath.Abs(cache)
	if err != nil {
		return programs{}, err
	}
	p := programs{claude: filepath.Join(cache, release, "node_modules", ".bin", "claude"), server: server}
	if _, err := os.Stat(p.claude); err != nil {
		_, err := output(ctx, "", "npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", filepath.Join(cache, release), "@anthropic-ai/claude-code@"+release)
		if err != nil {
			return programs{}, err
		}
	}
	version, err := output(ctx, "", p.claude, "--version")
	if err != nil {
		return programs{}, err
	}
	if !strings.HasPrefix(version, release+" ") {
		return programs{}, fmt.Errorf("%s says it is %q", p.claude, version)
	}
	if p.server != "" {
		p.server, err = filepath.Abs(p.server)
		return p, err
	}
	root, err := output(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/codexmcp/codexmcp")
	if err != nil {
		return programs{}, fmt.Errorf("not in the folder interop? %w", err)
	}
	p.server = filepath.Join(out, "codex-mcp")
	_, err = output(ctx, strings.TrimSpace(root), "go", "build", "-o", p.server, "./codexserver/cmd/codex-mcp")
	return p, err
}

// output runs a program; what it prints on standard error goes to ours.
func output(ctx context.Context, dir string, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return string(out), nil
}
