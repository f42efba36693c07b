package repo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// maxReview is the size of the longest diff in bytes, for tracked and for untracked files
// each.
const maxReview = 16 << 20

// diffTimeout is how long [ChangesOf] may take.
const diffTimeout = 30 * time.Second

// Changes are the changes to review.
type Changes struct {
	// Root is the top of the repository.
	Root string
	// Commit is the commit that the revision names, or "" without a revision.
	Commit string
	// Diff is a diff in git's format, without the content of binary files. Invalid UTF-8
	// is replaced.
	Diff string
	// Cut is true if the diff is too long and its end is missing.
	Cut bool
}

// RevisionError reports that a revision cannot be reviewed.
type RevisionError struct{ Err error }

// Error implements error.
func (e *RevisionError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *RevisionError) Unwrap() error { return e.Err }

// ChangesOf returns changes in the repository that contains dir, an absolute path. Target
// selects them: the uncommitted changes, including new files that are not ignored, the
// changes since the current branch left the revision, or the changes of the commit
// revision against its first parent. Scratch is as for [Read].
func ChangesOf(ctx context.Context, dir string, scratch Scratch, target protocol.ReviewTarget, revision string) (*Changes, error) {
	ctx, cancel := context.WithTimeout(ctx, diffTimeout)
	defer cancel()
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	root := Root(dir)
	if root == "" {
		return nil, fmt.Errorf("%s is not in a git repository", dir)
	}
	m, err := scratch.mirror(ctx, root, "refs/heads", "refs/remotes", "refs/tags")
	if err != nil {
		return nil, err
	}
	defer m.remove()
	c := &Changes{Root: root}
	if target != protocol.ReviewUncommitted {
		if c.Commit, err = m.commit(ctx, revision); err != nil {
			return nil, err
		}
	}
	if err := copyIndex(m.dir, m.gitDir); err != nil {
		return nil, err
	}
	if err := m.review(ctx, c, target, revision); err != nil {
		return nil, fmt.Errorf("changes: %w", err)
	}
	c.Diff = strings.ToValidUTF8(c.Diff, "\uFFFD")
	return c, nil
}

// commit returns the commit that a revision names.
func (p *private) commit(ctx context.Context, revision string) (string, error) {
	if revision == "" || strings.HasPrefix(revision, "-") || strings.ContainsFunc(revision, func(r rune) bool { return r < ' ' }) {
		return "", &RevisionError{fmt.Errorf("%q is not a revision", revision)}
	}
	out, err := p.git(ctx, call{}, "rev-parse", "--verify", "--quiet", revision+"^{commit}")
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if out = strings.TrimSpace(out); err != nil || !isHash(out) {
		return "", &RevisionError{fmt.Errorf("%q is not a revision of the repository %s", revision, p.root)}
	}
	return out, nil
}

// review adds the diff of target to c.
func (p *private) review(ctx context.Context, c *Changes, target protocol.ReviewTarget, revision string) error {
	switch target {
	case protocol.ReviewCommit:
		parent, err := p.commit(ctx, c.Commit+"^1")
		if err != nil {
			if parent, err = p.emptyTree(ctx); err != nil {
				return err
			}
		}
		return p.compare(ctx, c, parent, c.Commit)
	case protocol.ReviewBase:
		head, err := p.commit(ctx, "HEAD")
		if err != nil {
			return err
		}
		base, err := p.git(ctx, call{}, "merge-base", c.Commit, head)
		if base = strings.TrimSpace(base); err != nil || !isHash(base) {
			return &RevisionError{fmt.Errorf("%q has no commit in common with HEAD", revision)}
		}
		return p.compare(ctx, c, base)
	case protocol.ReviewUncommitted:
		head, err := p.commit(ctx, "HEAD")
		if err != nil { // the repository has no commit yet
			if head, err = p.emptyTree(ctx); err != nil {
				return err
			}
		}
		tracked, untracked, err := p.diffAll(ctx, call{cut: maxReview}, head)
		c.add(tracked)
		c.add(untracked)
		return err
	}
	return errors.New("unknown target")
}

// emptyTree returns the name of a tree without files.
func (p *private) emptyTree(ctx context.Context) (string, error) {
	out, err := p.git(ctx, call{}, "hash-object", "-t", "tree", "--stdin")
	return strings.TrimSpace(out), err
}

// compare adds the diff of a commit against another, or against the working tree.
func (p *private) compare(ctx context.Context, c *Changes, commits ...string) error {
	out, err := p.diff(ctx, call{cut: maxReview}, "diff", slices.Concat([]string{"--find-renames"}, commits, []string{"--"})...)
	c.add(out)
	return err
}

func (c *Changes) add(diff string) {
	c.Diff += diff
	if len(diff) == maxReview {
		c.Cut = true
		c.Diff += "\n"
	}
}
