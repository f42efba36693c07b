package tools

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// bounds are the folders in which the paths of calls must lie. Nil allows all paths.
type bounds []string

// boundsError reports a path outside the bounds.
type boundsError struct{ path string }

func (e *boundsError) Error() string {
	return e.path + " does not lie in one of the folders that the server's configuration allows you"
}

// resolve returns the real path of path, free of symbolic links, and the folder of the
// bounds that contains it. Without bounds it returns path unchanged. The error for a path
// outside the bounds does not reveal whether it exists.
func (b bounds) resolve(path string) (real, folder string, err error) {
	if b == nil {
		return path, "", nil
	}
	real, err = filepath.EvalSymlinks(path)
	if err != nil && !b.names(path) {
		return "", "", &boundsError{path}
	}
	if err != nil {
		return "", "", err
	}
	for _, folder := range b {
		if folder, err = filepath.EvalSymlinks(folder); err == nil && paths.Below(real, folder) {
			return real, folder, nil
		}
	}
	return "", "", &boundsError{path}
}

// names reports whether a path lies in one of the folders by its name.
func (b bounds) names(path string) bool {
	for _, folder := range b {
		if paths.Below(path, folder) {
			return true
		}
	}
	return false
}

// repository refuses a folder whose git repository has its top outside the bounds.
func (b bounds) repository(dir string) error {
	if b == nil {
		return nil
	}
	root := git.Root(dir)
	if root == "" {
		return nil
	}
	if _, _, err := b.resolve(root); err != nil {
		return fmt.Errorf("its git repository: %w", err)
	}
	return nil
}

// revive returns the thread with an id. With bounds it refuses a thread that works neither
// in the bounds nor in a worktree of a repository there. The rollout may come from a user
// who could name other folders. The thread is resumed with cfg.
func (t *Table) revive(ctx context.Context, c *call, id string, a thread.Attend, cfg protocol.Config) (*thread.Thread, error) {
	th, err := c.Threads.Revive(ctx, id, a, func() protocol.Config { return cfg })
	if err != nil {
		return nil, err
	}
	return th, t.admit(ctx, c, id, th)
}

// admit ends the thread and returns an error if the thread works neither in the bounds nor in a
// worktree of a repository there.
func (t *Table) admit(ctx context.Context, c *call, id string, th *thread.Thread) error {
	b := t.options.bounds()
	if b == nil {
		return nil
	}
	dir := th.Info().Cwd
	real, err := filepath.EvalSymlinks(dir)
	trees, none := filepath.EvalSymlinks(git.Worktrees(t.options.Home))
	if err == nil && none == nil && paths.Below(real, trees) {
		dir = git.CommonDir(real)
	}
	if _, _, err := b.resolve(dir); err != nil {
		return errors.Join(fmt.Errorf("argument /threadId: its folder: %w", err), c.Threads.End(context.WithoutCancel(ctx), id))
	}
	return nil
}

// addWorktree makes a git worktree of the repository that contains cwd, for a new conversation. The
// error names an argument.
func (t *Table) addWorktree(ctx context.Context, cwd string) (*git.Worktree, error) {
	if t.options.Home == "" {
		return nil, errors.New("argument /worktree: this server keeps no files, so it has no worktrees")
	}
	if err := config.CheckFolder(cwd); err != nil {
		return nil, err
	}
	b := t.options.bounds()
	err := b.repository(cwd)
	if common := git.CommonDir(cwd); err == nil && common != "" {
		_, _, err = b.resolve(common)
	}
	if err != nil {
		return nil, fmt.Errorf("argument /cwd: %w", err)
	}
	w, err := t.options.Report.Scratch.AddWorktree(ctx, cwd, git.Worktrees(t.options.Home))
	if err != nil {
		return nil, fmt.Errorf("argument /worktree: %w", err)
	}
	return w, nil
}

// inWorktree returns the words about a worktree for the caller.
func inWorktree(w *git.Worktree) string {
	return fmt.Sprintf("The conversation works in the git worktree %s, on the new branch %s. Commit there what is to stay, with git.", w.Path, w.Branch)
}
