package repo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// diffTimeout is how long [DiffToRemote] may take.
const diffTimeout = 30 * time.Second

// DiffToRemote compares the working tree that contains dir, an absolute path, with the
// closest of its commits that a remote is known to have. It does not contact the remotes.
// The diff has tracked files first, then those that are neither tracked nor ignored. It
// has binary patches, and invalid UTF-8 is replaced. Scratch is as for [Read].
func DiffToRemote(ctx context.Context, dir string, scratch Scratch) (sha, diff string, err error) {
	ctx, cancel := context.WithTimeout(ctx, diffTimeout)
	defer cancel()
	if _, err := os.Stat(dir); err != nil {
		return "", "", fmt.Errorf("repo: %w", err)
	}
	root := Root(dir)
	if root == "" {
		return "", "", errors.New("repo: not in a git repository")
	}
	m, err := scratch.mirror(ctx, root, "refs/heads", "refs/remotes")
	if err != nil {
		return "", "", fmt.Errorf("repo: %w", err)
	}
	defer m.remove()
	if sha, err = m.closest(ctx); err != nil {
		return "", "", fmt.Errorf("repo: closest commit of a remote: %w", err)
	}
	if err := copyIndex(m.dir, m.gitDir); err != nil {
		return "", "", fmt.Errorf("repo: %w", err)
	}
	tracked, untracked, err := m.diffAll(ctx, call{}, sha, "--binary")
	if err != nil {
		return "", "", fmt.Errorf("repo: changes: %w", err)
	}
	return sha, strings.ToValidUTF8(tracked+untracked, "\uFFFD"), nil
}

// closest finds the commit of a remote with the fewest commits between it and HEAD.
func (p *private) closest(ctx context.Context) (string, error) {
	known, err := p.git(ctx, call{}, "for-each-ref", "--count=1", "refs/remotes")
	if err != nil {
		return "", err
	}
	if known == "" {
		return "", errors.New("the repository has no remote branches; fetch from a remote first")
	}
	head, err := p.git(ctx, call{}, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return "", err
	}
	own, err := p.git(ctx, call{}, "rev-list", "--boundary", "HEAD", "--not", "--remotes")
	if err != nil {
		return "", err
	}
	if own == "" {
		return strings.TrimSpace(head), nil
	}
	closest, least := "", 0
	for line := range strings.Lines(own) {
		sha, isBoundary := strings.CutPrefix(strings.TrimSpace(line), "-")
		if !isBoundary {
			continue
		}
		count, err := p.git(ctx, call{}, "rev-list", "--count", sha+"..HEAD")
		if err != nil {
			return "", err
		}
		n, err := strconv.Atoi(strings.TrimSpace(count))
		if err != nil {
			return "", err
		}
		if closest == "" || n < least {
			closest, least = sha, n
		}
	}
	if closest == "" {
		return "", errors.New("no remote branch has a commit of this branch")
	}
	return closest, nil
}

// diff returns a diff in git's format, which does not depend on the user's configuration.
func (p *private) diff(ctx context.Context, c call, command string, args ...string) (string, error) {
	return p.git(ctx, c, append([]string{command, "--no-color", "--no-ext-diff", "--no-textconv", "--unified=3", "--inter-hunk-context=0",
		"--src-prefix=a/", "--dst-prefix=b/", "--no-relative", "--submodule=short", "--ignore-submodules=dirty"}, args...)...)
}

// diffAll returns the diff of the working tree against a commit, and one that adds the
// untracked files.
func (p *private) diffAll(ctx context.Context, c call, from string, options ...string) (tracked, untracked string, err error) {
	options = append(options, "--find-renames")
	if tracked, err = p.diff(ctx, c, "diff", append(options, from, "--")...); err != nil {
		return "", "", err
	}
	own, err := p.ofUntracked(ctx)
	if own != nil && err == nil {
		untracked, err = own.diff(ctx, c, "diff", append(options, "--")...)
	}
	return tracked, untracked, err
}

// ofUntracked returns a mirror whose index has only the untracked files, or nil if there
// are none.
func (p *private) ofUntracked(ctx context.Context) (*private, error) {
	list, err := p.git(ctx, call{}, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	var names strings.Builder
	for name := range strings.SplitSeq(list, "\x00") {
		switch {
		case name == "", strings.HasSuffix(name, "/"): // another repository
		case strings.HasPrefix(filepath.Join(p.root, name), p.scratch+string(filepath.Separator)):
		default:
			names.WriteString(name + "\x00")
		}
	}
	if names.Len() == 0 {
		return nil, nil
	}
	own := *p
	own.env = append(slices.Clone(own.env), "GIT_INDEX_FILE="+filepath.Join(p.scratch, "untracked"))
	if _, err := own.git(ctx, call{stdin: names.String()}, "add", "--intent-to-add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul"); err != nil {
		return nil, err
	}
	return &own, nil
}
