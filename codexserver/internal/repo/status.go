package repo

import (
	"context"
	"path/filepath"
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
	Files []FileChange
	More  int
	// Skipped are files that were left out.
	Skipped []Skip
	// Saved is true when all changes were applied or put on a branch.
	Saved bool
	// Notes are sentences about unusual things.
	Notes []string
}

// Kind is what happened to a file.
type Kind string

// The kinds.
const (
	Added    Kind = "add"
	Deleted  Kind = "delete"
	Modified Kind = "update"
	Moved    Kind = "move"
)

// FileChange is a changed file.
type FileChange struct {
	// Path is relative to the worktree's top, with slashes. From is the path before a
	// move.
	Path, From string
	Kind       Kind
	// Added and Removed count lines. They are 0 for binary files.
	Added, Removed int
	IsBinary       bool
	// Mode and OldMode are the new and old mode of the file as git writes it, or "".
	Mode, OldMode string
}

// Status compares the worktree with its first content.
func (w *Worktree) Status(ctx context.Context) (*Status, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	end, err := w.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	scratch, remove, err := w.scratch()
	if err != nil {
		return nil, err
	}
	defer remove()
	tree, skipped, err := w.contents(ctx, scratch)
	if err != nil {
		return nil, err
	}
	return w.status(ctx, tree, skipped)
}

func (w *Worktree) status(ctx context.Context, tree string, skipped []Skip) (*Status, error) {
	s := &Status{Base: w.record.Base, Skipped: skipped, Notes: w.notes(), Saved: w.isSaved(tree)}
	s.Head, s.Branch, _ = Head(w.record.admin(), w.record.CommonDir)
	changes, err := w.changes(ctx, w.record.Start, tree, true)
	if err != nil {
		return nil, err
	}
	counts, err := w.counts(ctx, w.record.Start, tree)
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		if len(s.Files) == maxListed {
			s.More = len(changes) - maxListed
			break
		}
		s.Files = append(s.Files, c.show(counts))
	}
	return s, nil
}

func (c treeChange) show(counts map[string]lineCount) FileChange {
	shown := FileChange{Path: c.path, Kind: Modified}
	if c.before.exists() {
		shown.OldMode = c.before.mode
	}
	if c.after.exists() {
		shown.Mode = c.after.mode
	}
	switch {
	case c.to != "":
		shown.Path, shown.From, shown.Kind = c.to, c.path, Moved
	case !c.before.exists():
		shown.Kind = Added
	case !c.after.exists():
		shown.Kind = Deleted
	}
	n := counts[shown.Path]
	shown.Added, shown.Removed, shown.IsBinary = n.added, n.removed, n.isBinary
	return shown
}

// isSaved reports whether a tree of the worktree has no changes, or was applied or put on
// a branch.
func (w *Worktree) isSaved(tree string) bool {
	if tree == w.record.Start {
		return true
	}
	return slices.Contains(w.record.Saved, tree)
}

// Diff returns the changes that [Worktree.Status] lists as a diff in git's format, without
// the content of binary files. It is cut off after max bytes.
func (w *Worktree) Diff(ctx context.Context, max int) (diff string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	end, err := w.begin(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	scratch, remove, err := w.scratch()
	if err != nil {
		return "", err
	}
	defer remove()
	tree, _, err := w.contents(ctx, scratch)
	if err != nil {
		return "", err
	}
	return w.git(ctx, call{tree: filepath.Join(w.folder(), "git"), cut: max}, "diff-tree", "-r", "-p", "--find-renames", "--no-color", "--no-ext-diff", "--no-textconv",
		"--src-prefix=a/", "--dst-prefix=b/", w.record.Start, tree)
}
