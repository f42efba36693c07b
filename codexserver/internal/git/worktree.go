package git

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// Worktrees returns the folder with the worktrees that [Scratch.AddWorktree] makes, in Codex's
// home. It is not the folder worktrees there, from which Codex's own application removes old ones.
func Worktrees(home string) string { return filepath.Join(home, "codex-mcp-worktrees") }

// Worktree is a git worktree on a new branch.
type Worktree struct {
	Record
	// Path is its top folder.
	Path string

	scratch Scratch
}

// worktreeTimeout is how long making a worktree may take.
const worktreeTimeout = 10 * time.Minute

// AddWorktree makes a worktree of the repository that contains dir, an absolute path, on a new branch at HEAD. It has a
// folder of its own below the folder trees, which is created if it is missing.
//
// Git works on the repository itself, with its configuration. It runs in a sandbox, in which it
// writes only to the new folder and the repository's git folder, or not at all. Hooks, monitors and
// filters are off, so a large file that is stored elsewhere stays a pointer. Submodules stay empty.
func (s Scratch) AddWorktree(ctx context.Context, dir, trees string) (*Worktree, error) {
	ctx, cancel := context.WithTimeout(ctx, worktreeTimeout)
	defer cancel()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	root := Root(dir)
	if root == "" {
		return nil, fmt.Errorf("%s is not in the working tree of a git repository", dir)
	}
	m, err := s.open(root)
	if err == nil {
		err = m.ownSettings(ctx)
	}
	if err == nil {
		err = m.check()
	}
	if err == nil {
		err = os.MkdirAll(trees, 0o700)
	}
	if err == nil {
		trees, err = filepath.EvalSymlinks(trees)
	}
	if err != nil {
		return nil, err
	}
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	name := hex.EncodeToString(id[:])
	w := &Worktree{Path: filepath.Join(trees, name), Record: Record{Branch: branchPrefix + name}, scratch: s}
	w.Root, w.CommonDir = m.root, m.commonDir
	done, err := w.mark(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := os.Mkdir(w.Path, 0o700); err != nil {
		return nil, err
	}
	m.programs.Given(w.Path)
	writes := []string{m.commonDir, w.Path}
	add := func(branch string) error {
		_, err := m.change(ctx, inTree(root), writes, "worktree", "add", "--quiet", "--no-checkout", "--no-track",
			branch, w.Branch, w.Path, "HEAD")
		return err
	}
	err = add("-b")
	for n := 0; n < 5 && err != nil && ctx.Err() == nil && strings.Contains(err.Error(), "commondir"); n++ {
		time.Sleep(20 * time.Millisecond) // another worktree is being made or removed, whose files git could not read
		err = add("-B")                   // the branch may have been made before git failed
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(w.Path))
	}
	if err = w.describe(m); err == nil {
		// Only now git says which filters the worktree has: the configuration may depend on its folder and its branch.
		c := inTree(w.Path)
		c.limit = worktreeTimeout
		_, err = m.change(ctx, c, writes, "reset", "--hard", "--quiet", "--no-recurse-submodules")
	}
	if err == nil {
		w.Base, err = w.tip(ctx)
	}
	w.Cwd = filepath.Join(w.Path, strings.TrimPrefix(dir, root))
	// it is missing, or a symbolic link leads to it
	if info, err := os.Stat(w.Cwd); err != nil || !info.IsDir() || paths.Real(w.Cwd) != w.Cwd {
		w.Cwd = w.Path
	}
	if err == nil {
		err = w.write()
	}
	if err != nil {
		return nil, errors.Join(err, w.remove(ctx, m))
	}
	return w, nil
}

// check refuses a repository without a commit, and a git folder that belongs to another working
// tree, in whose repository the worktree would be.
func (m *mirror) check() error {
	if commit, _, plain := plainHead(m.gitDir, m.commonDir); plain && commit == "" {
		return fmt.Errorf("the repository %s has no commit yet", m.root)
	}
	if m.gitDir != m.commonDir {
		back, err := box.Pointer(filepath.Join(m.gitDir, "gitdir"), "")
		if err != nil || filepath.Dir(m.gitDir) != filepath.Join(m.commonDir, "worktrees") ||
			!isSame(filepath.Dir(back), m.root) {
			return fmt.Errorf("%s is not the git folder of the working tree %s", m.gitDir, m.root)
		}
		return nil
	}
	if isTrue(m.settings["core.bare"]) {
		return fmt.Errorf("the repository %s is bare", m.root)
	}
	tree := m.settings["core.worktree"] // a submodule has it
	if tree != "" && !filepath.IsAbs(tree) {
		tree = filepath.Join(m.gitDir, tree)
	}
	if m.gitDir != filepath.Join(m.root, ".git") && !isSame(tree, m.root) {
		return fmt.Errorf("the .git of %s leads to %s, which does not name it", m.root, m.gitDir)
	}
	return nil
}

func isSame(a, b string) bool {
	first, _ := os.Stat(a)
	second, _ := os.Stat(b)
	return os.SameFile(first, second) // not if one is missing
}

// Remove removes the worktree and its branch, with all that is in them.
func (w *Worktree) Remove(ctx context.Context) error {
	m, err := w.scratch.open(w.Root)
	if err == nil && m.commonDir != w.CommonDir {
		err = fmt.Errorf("%s is not a working tree of the repository %s", w.Root, w.CommonDir)
	}
	if err != nil {
		return err
	}
	return w.remove(ctx, m)
}

// remove is Remove by way of the working tree for which the worktree was made.
func (w *Worktree) remove(ctx context.Context, m *mirror) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), worktreeTimeout)
	defer cancel()
	err := os.RemoveAll(w.Path) // which git may not do
	for _, args := range [][]string{
		{"worktree", "remove", "--force", "--force", w.Path}, {"branch", "--quiet", "-D", w.Branch},
	} {
		_, failed := m.change(ctx, inTree(m.root), []string{m.commonDir}, args...)
		err = errors.Join(err, failed)
	}
	return errors.Join(err, w.forget())
}

// inTree is a call of git in the top folder of a working tree, whose .git counts.
func inTree(dir string) call {
	return call{dir: dir, env: []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir)}}
}

// change runs git on the repository itself, with hooks and filters off.
func (m *mirror) change(ctx context.Context, c call, writes []string, args ...string) (out string, err error) {
	if err := m.regular(); err != nil {
		return "", err
	}
	if c.confined, err = m.programs.Confine(writes...); err != nil {
		return "", err
	}
	if slices.ContainsFunc(userFiles(), func(file string) bool { return exists(file) && m.programs.Writable(file) }) {
		c.env = append(c.env, "GIT_CONFIG_GLOBAL="+os.DevNull)
	}
	// Git lists more than the filters, because it fails if none is set.
	keys, err := m.run(ctx, c, "config", "--list", "--name-only", "-z")
	if err != nil {
		return "", err
	}
	set := slices.Clone(worktreeSettings)
	for key := range strings.SplitSeq(keys, "\x00") {
		end := strings.LastIndex(key, ".")
		switch {
		case end < 0:
		case strings.HasPrefix(key, "filter."):
			for _, name := range []string{"clean", "smudge", "process"} {
				set = append(set, key[:end]+"."+name, "")
			}
			set = append(set, key[:end]+".required", "false")
		case strings.HasPrefix(key, "hook."):
			set = append(set, key[:end]+".enabled", "false")
		}
	}
	// As variables, because an option cannot set a key with a "=".
	for i := 0; i < len(set); i += 2 {
		c.env = append(c.env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i/2, set[i]),
			fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i/2, set[i+1]))
	}
	c.env = append(c.env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(set)/2))
	return m.run(ctx, c, args...)
}

// worktreeSettings are keys with their values: hooks in the configuration, which git has since
// 2.54, and what could make git read another file or work in a submodule.
var worktreeSettings = []string{
	"hook.post-checkout.enabled", "false", "hook.post-index-change.enabled", "false",
	"hook.reference-transaction.enabled", "false",
	"core.attributesFile", os.DevNull, "submodule.recurse", "false", "maintenance.auto", "false", "gc.auto", "0",
}
