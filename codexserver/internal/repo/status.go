package repo

import (
	"context"
	"slices"
)

// maxListed is how many changed files a list has at most.
const maxListed = 1000

// Status describes a worktree's changes since it was made.
type Status struct {
	// Base is the commit that the worktree was made from. Head is its current commit, or ""
	// if that cannot be read. Branch is its current branch, usually none.
	Base, Head, Branch string
	// Files are changed files by path. More is how many others have changed.
	Files []Change
	More  int
	// Skipped are files that were left out.
	Skipped []Skip
	// Saved is true when all changes were applied or put on a branch.
	Saved bool
	// Notes are sentences about unusual things.
	Notes []string
}

// Status compares the worktree with its first content.
func (w *Worktree) Status(ctx context.Context) (*Status, error) {
	ctx, scratch, end, err := w.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	s, _, err := w.status(ctx, scratch)
	return s, err
}

// status is Status, with the tree of the content.
func (w *Worktree) status(ctx context.Context, scratch string) (s *Status, tree string, err error) {
	tree, changes, skipped, err := w.contents(ctx, scratch, true)
	if err != nil {
		return nil, "", err
	}
	s = &Status{Base: w.record.Base, Files: changes, Skipped: skipped, Notes: w.notes(), Saved: w.isSaved(tree)}
	s.Head, s.Branch, _ = readHead(w.record.admin(), w.record.CommonDir)
	if s.More = max(0, len(s.Files)-maxListed); s.More > 0 {
		s.Files = s.Files[:maxListed]
	}
	return s, tree, nil
}

// isSaved reports whether a tree of the worktree has no changes, or was applied or put on
// a branch.
func (w *Worktree) isSaved(tree string) bool {
	if tree == w.record.Start {
		return true
	}
	return slices.Contains(w.record.Saved, tree)
}
