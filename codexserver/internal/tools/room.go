package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// maxTrees is how many worktrees an error names.
const maxTrees = 3

// room fails if the worktrees take more of the disk than they may. It removes none.
func (t *Table) room(ctx context.Context) error {
	limit := t.options.WorktreeBytes
	if limit <= 0 {
		return nil
	}
	used, err := t.options.Report.Scratch.Usage(ctx, git.Worktrees(t.options.Home))
	if err != nil {
		return err
	}
	if used.Bytes <= limit {
		if log := t.options.Report.Logger; used.Cut && log != nil {
			log.Warn("the worktrees were not looked at whole: limits.worktrees may be reached", "bytes", used.Bytes)
		}
		return nil
	}
	var largest []string
	for _, tree := range used.Trees[:min(len(used.Trees), maxTrees)] {
		largest = append(largest, fmt.Sprintf("%s (%s)", plain.Short(tree.Path, plain.MaxPath), size(tree.Bytes)))
	}
	first, remove := used.Trees[0], []string{"git", "worktree", "remove"}
	if first.Root != "" {
		remove = []string{"git", "-C", first.Root, "worktree", "remove"}
	}
	atLeast := ""
	if used.Cut {
		atLeast = "at least "
	}
	const words = "all worktrees take %s%s, more than limits.worktrees, which is %s. The largest: %s. " +
		"This removes one, and leaves its branch: %s"
	return fmt.Errorf(words, atLeast, size(used.Bytes), size(limit), strings.Join(largest, ", "),
		plain.ShortCommand(append(remove, first.Path), 3*plain.MaxWords))
}

// size returns a number of bytes for a person.
func size(bytes int64) string {
	n, unit := float64(bytes), "bytes"
	for _, next := range []string{"kB", "MB", "GB", "TB"} {
		if n < 1000 {
			break
		}
		n, unit = n/1000, next
	}
	if unit == "bytes" {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%.1f %s", n, unit)
}
