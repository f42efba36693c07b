package repo

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
)

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
