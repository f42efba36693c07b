package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/admit"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// ProjectFolder returns the project folder of Claude Code, from CLAUDE_PROJECT_DIR in the
// environment of the client whose call ctx is. Without it, it returns the folder in which
// the client runs, or "" for that of this process.
func ProjectFolder(ctx context.Context) string {
	environ, folder := os.Environ(), ""
	if o := engine.OriginOf(ctx); o != nil {
		environ, folder = o.Environ, o.Folder
	}
	path := run.Value(environ, "CLAUDE_PROJECT_DIR")
	if info, err := os.Stat(path); err == nil && info.IsDir() && filepath.IsAbs(path) {
		return path
	}
	return folder
}

// Caller returns the client with a name as the caller of a call. It may have commands write unasked in the folders in which
// the server was started for it, and in its roots.
func (t *Table) Caller(client string, roots Roots) admit.Caller {
	return t.Rules.Caller(client, func(ctx context.Context) []string {
		all := []string{t.options.Folder, ProjectFolder(ctx)}
		if engine.OriginOf(ctx) == nil {
			wd, _ := os.Getwd()
			all = append(all, wd)
		}
		if roots != nil {
			all = append(all, roots(ctx)...)
		}
		return slices.DeleteFunc(all, func(path string) bool { return path == "" })
	})
}

// folder returns the folder of a call that names none, "" for that of this process. It may ask the client.
func (c *Call) folder(ctx context.Context) string {
	folder := c.table.options.Folder
	if folder == "" && c.Roots != nil {
		folder = cmp.Or(c.Roots(ctx)...)
	}
	return cmp.Or(folder, ProjectFolder(ctx))
}

// workingFolder makes a call's cwd absolute. With bounds it returns the real path.
func (c *Call) workingFolder(ctx context.Context, cwd string) (string, error) {
	if cwd == "" {
		cwd = c.folder(ctx)
	}
	cwd, err := engine.Abs(ctx, paths.Drive(runtime.GOOS, cwd))
	if err != nil {
		return "", fmt.Errorf("argument /cwd: %w", err)
	}
	return c.table.Rules.Folder(cwd)
}

// checkRepository refuses a working folder that does not exist, and then one whose repository lies outside the bounds.
func (t *Table) checkRepository(cwd string) error {
	if err := config.CheckFolder(cwd); err != nil {
		return err
	}
	return t.Rules.Repository(cwd)
}

// addWorktree makes a git worktree of the repository that contains cwd, for a new conversation. The
// error names an argument.
func (t *Table) addWorktree(ctx context.Context, cwd string) (*git.Worktree, error) {
	if t.options.Home == "" {
		return nil, errors.New("argument /worktree: this server keeps no files, so it has no worktrees")
	}
	if err := t.checkRepository(cwd); err != nil {
		return nil, err
	}
	if err := t.room(ctx); err != nil {
		return nil, fmt.Errorf("argument /worktree: %w", err)
	}
	w, err := t.options.Report.Scratch.AddWorktree(ctx, cwd, git.Worktrees(t.options.Home))
	if err != nil {
		return nil, fmt.Errorf("argument /worktree: %w", err)
	}
	return w, nil
}
