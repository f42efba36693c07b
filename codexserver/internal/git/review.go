package git

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

const (
	maxReview   = 16 << 20 // bytes of the longest diff
	diffTimeout = 30 * time.Second
)

// Changes are the changes to review.
type Changes struct {
	Root   string // the top of the repository
	Commit string // that the revision names, or "" without a revision
	Diff   string // in git's format, without the content of binary files; invalid UTF-8 is replaced
	Cut    bool   // the diff is too long, and its end is missing

	withheld func(path string) error
}

// RevisionError reports that a revision cannot be reviewed.
type RevisionError struct{ Err error }

func (e *RevisionError) Error() string { return e.Err.Error() }

func (e *RevisionError) Unwrap() error { return e.Err }

// Review returns changes in the repository that contains dir, an absolute path. Target selects them: the uncommitted
// changes, including new files that are not ignored, the changes since the current branch left the revision, or the
// changes of the commit revision against its first parent. Scratch is as for [Head], and withheld as in [Options].
func Review(
	ctx context.Context, dir string, scratch Scratch, target protocol.ReviewTarget, revision string,
	withheld func(path string) error,
) (*Changes, error) {
	ctx, cancel := context.WithTimeout(ctx, diffTimeout)
	defer cancel()
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	root := Root(dir)
	if root == "" {
		return nil, fmt.Errorf("%s is not in a git repository", dir)
	}
	m, err := scratch.open(root)
	if err != nil {
		return nil, err
	}
	defer m.remove()
	c := &Changes{Root: root, withheld: withheld}
	if target != protocol.ReviewUncommitted {
		if c.Commit, err = m.commit(ctx, revision); err != nil {
			return nil, err
		}
	}
	if err = m.make(ctx); err == nil {
		_, err = m.copyIndex()
	}
	if err != nil {
		return nil, err
	}
	switch target {
	case protocol.ReviewCommit:
		err = m.compareTo(ctx, c, m.orEmpty(ctx, c.Commit+"^1"), c.Commit)
	case protocol.ReviewBase:
		if err = m.compareTo(ctx, c, "--merge-base", c.Commit); err != nil &&
			strings.Contains(err.Error(), "no merge base") {
			return nil, &RevisionError{fmt.Errorf("%q has no commit in common with HEAD", revision)}
		}
	default:
		if err = m.addNew(ctx); err == nil {
			err = m.compareTo(ctx, c, m.orEmpty(ctx, "HEAD"))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("changes: %w", err)
	}
	c.Diff = strings.ToValidUTF8(c.Diff, "\uFFFD")
	return c, nil
}

func (m *mirror) commit(ctx context.Context, revision string) (string, error) {
	if revision == "" || strings.HasPrefix(revision, "-") ||
		strings.ContainsFunc(revision, func(r rune) bool { return r < ' ' }) {
		return "", &RevisionError{fmt.Errorf("%q is not a revision", revision)}
	}
	out, err := m.git(ctx, call{}, "rev-parse", "--verify", "--quiet", revision+"^{commit}")
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if out = strings.TrimSpace(out); err != nil || !isHash(out) {
		return "", &RevisionError{fmt.Errorf("%q is not a revision of the repository %s", revision, m.root)}
	}
	return out, nil
}

// orEmpty returns the commit that a revision names, or the tree without files if there is none.
func (m *mirror) orEmpty(ctx context.Context, revision string) string {
	if commit, err := m.commit(ctx, revision); err == nil {
		return commit
	}
	if m.settings["extensions.objectformat"] == "sha256" {
		return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
	}
	return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
}

// compareTo makes the diff of a commit against another, or against the working tree.
func (m *mirror) compareTo(ctx context.Context, c *Changes, commits ...string) (err error) {
	shown, err := m.shown(ctx, c, commits)
	if err != nil {
		return err
	}
	args := slices.Concat([]string{"diff", "--find-renames", "--src-prefix=a/", "--dst-prefix=b/"}, diffOptions,
		commits, []string{"--"}, shown)
	if c.Diff, err = m.git(ctx, call{cut: maxReview, options: []string{"--no-literal-pathspecs"}},
		args...); len(c.Diff) == maxReview {
		c.Cut = true
		c.Diff += "\n"
	}
	return err
}

// shown returns the pathspecs that leave out of a diff what is withheld, none if nothing is.
func (m *mirror) shown(ctx context.Context, c *Changes, commits []string) (specs []string, err error) {
	if c.withheld == nil {
		return nil, nil
	}
	args := slices.Concat([]string{"diff", "--no-renames", "--name-only", "-z"}, diffOptions, commits, []string{"--"})
	names, err := m.git(ctx, call{}, args...)
	for name := range strings.SplitSeq(names, "\x00") {
		if name != "" && withholds(c.withheld, c.Root, name) {
			specs = append(specs, ":(top,exclude,literal)"+name)
		}
	}
	if specs != nil {
		specs = append(specs, ":(top)")
	}
	return specs, err
}

// addNew makes the index know the files that it does not have, so that they are in a diff.
func (m *mirror) addNew(ctx context.Context) error {
	names, err := m.git(ctx, call{}, "ls-files", "--others", "--exclude-standard", "-z")
	files := slices.DeleteFunc(strings.Split(names, "\x00"), func(name string) bool { // nor another repository
		return name == "" || strings.HasSuffix(name, "/") || m.inScratch(name)
	})
	if err == nil && len(files) > 0 {
		_, err = m.git(ctx, call{stdin: zeros(files)}, "add", "--intent-to-add", "--force", "--pathspec-from-file=-",
			"--pathspec-file-nul")
	}
	return err
}
