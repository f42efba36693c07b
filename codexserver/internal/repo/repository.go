package repo

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// RefusedError reports why a worktree, branch or merge is not possible as requested.
type RefusedError struct {
	// Reason is a sentence without a full stop.
	Reason string
}

// Error implements error.
func (e *RefusedError) Error() string { return "worktree: " + e.Reason }

func refuse(format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...)}
}

// callers is a caller's repository. Its paths are free of symbolic links.
type callers struct {
	source
	head string // the commit
}

// openCallers finds the repository that contains dir. It refuses one whose configuration or
// folders lead elsewhere. Git runs in scratch, and no program in the folders more is used.
func (s Store) openCallers(ctx context.Context, dir, scratch string, more ...string) (*callers, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	root := Root(dir)
	if root == "" {
		return nil, refuse("%s is not in a git repository", dir)
	}
	r := &callers{}
	if r.source, err = (Scratch{Dir: scratch, Programs: s.Programs}).open(ctx, root, more...); err != nil {
		return nil, err
	}
	if err := r.check(ctx, scratch); err != nil {
		return nil, err
	}
	var ok bool
	if r.head, _, ok = readHead(r.gitDir, r.commonDir); !ok {
		return nil, refuse("HEAD of %s cannot be read", r.root)
	}
	if r.head == "" {
		return nil, refuse("%s has no commit yet", r.root)
	}
	return r, nil
}

// realFolder returns the path of a folder without symbolic links.
func realFolder(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if info, err := os.Lstat(real); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder", path)
	}
	return real, nil
}

// check checks that the git folder belongs to this tree: it lies in the tree, or it names the
// tree.
func (r *callers) check(ctx context.Context, scratch string) error {
	if isTrue(r.settings["extensions.worktreeconfig"]) {
		data, err := readConfig(filepath.Join(r.gitDir, "config.worktree"))
		if err != nil {
			return refuse("%v", err)
		}
		own, err := r.program.parseSettings(ctx, data, scratch)
		if err != nil {
			return refuse("%v", err)
		}
		maps.Copy(r.settings, own)
	}
	for key, value := range r.settings {
		if name, ok := strings.CutPrefix(key, "extensions."); ok && !isExtension(name, value) {
			return refuse("the repository has the extension %s = %s, which is not supported", name, value)
		}
	}
	if isTrue(r.settings["core.bare"]) && r.gitDir == r.commonDir {
		return refuse("the repository is bare")
	}
	tree, isSet := r.settings["core.worktree"]
	switch {
	case r.gitDir != r.commonDir:
		if filepath.Dir(r.gitDir) != filepath.Join(r.commonDir, "worktrees") {
			return refuse("%s is not the folder of a worktree of %s", r.gitDir, r.commonDir)
		}
		back, err := pointer(filepath.Join(r.gitDir, "gitdir"), "")
		if err != nil || !isSame(filepath.Dir(back), r.root) {
			return refuse("%s does not belong to the working tree %s", r.gitDir, r.root)
		}
	case isSet:
		if !filepath.IsAbs(tree) {
			tree = filepath.Join(r.gitDir, tree)
		}
		if !isSame(tree, r.root) {
			return refuse("the configuration of %s names another working tree, %s", r.root, tree)
		}
	case r.gitDir != filepath.Join(r.root, ".git"):
		return refuse("the .git of %s leads to %s, which does not name it", r.root, r.gitDir)
	}
	return nil
}

// isExtension reports whether an extension of a repository is supported: it has no effect
// here, or configuration copies it.
func isExtension(name, value string) bool {
	switch name {
	case "objectformat":
		return slices.Contains([]string{"sha1", "sha256"}, strings.ToLower(value))
	case "refstorage":
		return strings.EqualFold(value, "files")
	}
	return slices.Contains([]string{"noop", "noop-v1", "preciousobjects", "partialclone", "worktreeconfig"}, name)
}

func isTrue(value string) bool {
	return slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(value))
}

func isFalse(value string) bool {
	return slices.Contains([]string{"false", "no", "off", "0"}, strings.ToLower(value))
}

// isSame reports whether two paths lead to one folder.
func isSame(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}
