package repo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// maxReview is the size of the longest diff in bytes, for tracked and for untracked files
// each.
const maxReview = 16 << 20

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
	m, err := newMirror(ctx, root, scratch, "refs/heads", "refs/remotes", "refs/tags")
	if err != nil {
		return nil, err
	}
	defer m.remove()
	c := &Changes{Root: root}
	if target != protocol.ReviewUncommitted {
		if c.Commit, err = m.commit(revision); err != nil {
			return nil, err
		}
	}
	if err := m.copyIndex(); err != nil {
		return nil, err
	}
	if err := m.review(c, target, revision); err != nil {
		return nil, fmt.Errorf("changes: %w", err)
	}
	c.Diff = strings.ToValidUTF8(c.Diff, "\uFFFD")
	return c, nil
}

// commit returns the commit that a revision names.
func (m *mirror) commit(revision string) (string, error) {
	if revision == "" || strings.HasPrefix(revision, "-") || strings.ContainsFunc(revision, func(r rune) bool { return r < ' ' }) {
		return "", &RevisionError{fmt.Errorf("%q is not a revision", revision)}
	}
	out, err := m.git("", "rev-parse", "--verify", "--quiet", revision+"^{commit}")
	if m.ctx.Err() != nil {
		return "", context.Cause(m.ctx)
	}
	if out = strings.TrimSpace(out); err != nil || !IsHash(out) {
		return "", &RevisionError{fmt.Errorf("%q is not a revision of the repository %s", revision, m.root)}
	}
	return out, nil
}

// review adds the diff of target to c.
func (m *mirror) review(c *Changes, target protocol.ReviewTarget, revision string) error {
	switch target {
	case protocol.ReviewCommit:
		parent, err := m.commit(c.Commit + "^1")
		if err != nil {
			if parent, err = m.emptyTree(); err != nil {
				return err
			}
		}
		return m.compare(c, parent, c.Commit)
	case protocol.ReviewBase:
		head, err := m.commit("HEAD")
		if err != nil {
			return err
		}
		base, err := m.git("", "merge-base", c.Commit, head)
		if base = strings.TrimSpace(base); err != nil || !IsHash(base) {
			return &RevisionError{fmt.Errorf("%q has no commit in common with HEAD", revision)}
		}
		return m.compare(c, base)
	case protocol.ReviewUncommitted:
		head, err := m.commit("HEAD")
		if err != nil { // the repository has no commit yet
			if head, err = m.emptyTree(); err != nil {
				return err
			}
		}
		if err := m.compare(c, head); err != nil {
			return err
		}
		own, err := m.ofUntracked()
		if own == nil || err != nil {
			return err
		}
		return own.compare(c)
	}
	return errors.New("unknown target")
}

// emptyTree returns the name of a tree without files.
func (m *mirror) emptyTree() (string, error) {
	out, err := m.git("", "hash-object", "-t", "tree", "--stdin")
	return strings.TrimSpace(out), err
}

// compare adds a diff to c. Its format does not depend on the user's configuration.
func (m *mirror) compare(c *Changes, args ...string) error {
	args = append([]string{"diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", "--unified=3", "--inter-hunk-context=0",
		"--src-prefix=a/", "--dst-prefix=b/", "--no-relative", "--submodule=short", "--ignore-submodules=dirty"}, append(args, "--")...)
	call := m.call()
	call.Cut = maxReview
	out, err := m.program.Run(m.ctx, call, args...)
	c.Diff += out
	if len(out) == maxReview {
		c.Cut = true
		c.Diff += "\n"
	}
	return err
}
