// Package gitinfo asks git about a folder, without running anything that the
// repository configures.
package gitinfo

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// timeout bounds each call of git.
const timeout = 5 * time.Second

// Root finds the repository that dir, an absolute path, is in: the nearest
// folder with a .git. It is "" outside a repository.
func Root(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// Read tells where the repository of dir stands. It is nil outside a repository
// and where there is no git.
func Read(ctx context.Context, dir string) *protocol.GitInfo {
	if Root(dir) == "" {
		return nil
	}
	info := &protocol.GitInfo{
		CommitHash:    line(ctx, dir, "rev-parse", "--verify", "HEAD"),
		Branch:        line(ctx, dir, "rev-parse", "--abbrev-ref", "HEAD"),
		RepositoryURL: line(ctx, dir, "remote", "get-url", "origin"),
	}
	if info.Branch == "HEAD" { // detached, or no commit yet
		info.Branch = ""
	}
	return info
}

// line is the first line that git prints, "" when it fails.
func line(ctx context.Context, dir string, args ...string) string {
	out, err := Run(ctx, dir, args...)
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return first
}

// Run runs git in dir without hooks, monitors or prompts and gives what it prints.
func Run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return prepare(ctx, dir, args...).Output()
}

func prepare(ctx context.Context, dir string, args ...string) *exec.Cmd {
	args = append([]string{"-c", "core.fsmonitor=", "-c", "core.hooksPath=" + os.DevNull}, args...)
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0")
	cmd.WaitDelay = time.Second
	return cmd
}
