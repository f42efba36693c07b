package tools

import (
	"context"
	"errors"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
)

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
