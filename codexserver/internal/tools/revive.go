package tools

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
)

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
