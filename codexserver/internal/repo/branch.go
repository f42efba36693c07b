package repo

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// BranchOptions are the options of [Worktree.Branch].
type BranchOptions struct {
	// Name is the branch's name, without refs/heads. The default is codex/ID with the id of
	// the worktree.
	Name string
	// Message is the commit's message. The default names a thread of codex-mcp.
	Message string
}

// Branch is a branch with a worktree's content.
type Branch struct {
	// Name is the name of the branch, Commit its commit.
	Name, Commit string
	// Skipped are changed files that the commit does not have.
	Skipped []Skip
}

// Branch makes a new branch in the repository. Its commit has the worktree's content, and
// its parent is the worktree's HEAD. Branch does not check out the new branch, and does
// not change an existing one.
func (w *Worktree) Branch(ctx context.Context, o BranchOptions) (*Branch, error) {
	ctx, scratch, end, err := w.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	b := &Branch{Name: cmp.Or(o.Name, "codex/"+w.record.ID)}
	if err := w.checkName(ctx, b.Name); err != nil {
		return nil, err
	}
	tree, _, skipped, err := w.contents(ctx, scratch, false)
	if err != nil {
		return nil, err
	}
	b.Skipped = skipped
	if b.Commit, err = w.commit(ctx, tree, cmp.Or(o.Message, "Work of a thread of codex-mcp")); err != nil {
		return nil, err
	}
	if err := w.copyObjects(ctx, b.Commit); err != nil {
		return nil, err
	}
	if err := w.createRef(b.Name, b.Commit); err != nil {
		return nil, err
	}
	return b, w.update(func(r *record) {
		r.Saved = append(r.Saved, tree)
		r.Branched = b.Commit
	})
}

// branchName is stricter than git's own rules, so that a name needs no quotes anywhere.
var branchName = lazyregexp.Regexp{Text: `^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$`}

func (w *Worktree) checkName(ctx context.Context, name string) error {
	if len(name) > 200 || !branchName.Get().MatchString(name) || name == "HEAD" {
		return refuse("%q is not a valid name for a branch: use at most 200 letters and digits, with . _ - / between them", name)
	}
	if _, err := w.private.git(ctx, call{}, "check-ref-format", "refs/heads/"+name); err != nil {
		return refuse("%q is not a valid name for a branch: git does not allow it", name)
	}
	return nil
}

// commit makes a commit of a tree, with the worktree's HEAD as its parent. Commands may
// have moved HEAD with commits that a person approved.
func (w *Worktree) commit(ctx context.Context, tree, message string) (string, error) {
	parent, _, ok := readHead(w.record.admin(), w.record.CommonDir)
	if !ok || parent == "" {
		return "", refuse("HEAD of the worktree cannot be read")
	}
	if _, err := w.private.git(ctx, call{}, "merge-base", "--is-ancestor", w.record.Base, parent); err != nil {
		return "", refuse("HEAD of the worktree, %s, does not come from %s", parent, w.record.Base)
	}
	same, err := w.private.line(ctx, call{}, "rev-parse", "--verify", parent+"^{tree}")
	if err != nil || same == tree {
		return parent, err
	}
	user, err := w.private.asked(ctx, `^user\.(name|email)$`)
	if err != nil {
		return "", err
	}
	name, email := cmp.Or(user["user.name"], "codex-mcp"), cmp.Or(user["user.email"], "codex-mcp@localhost")
	return w.private.line(ctx, call{stdin: message, env: []string{
		"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email, "GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + email,
	}}, "commit-tree", "--no-gpg-sign", "-p", parent, "-F", "-", tree)
}

// copyObjects writes the objects of a commit that the repository does not have to it, as a
// pack. Git sees the repository's objects, and writes only packs.
func (w *Worktree) copyObjects(ctx context.Context, commit string) error {
	objects := filepath.Join(w.record.CommonDir, "objects")
	packs := filepath.Join(objects, "pack")
	for _, dir := range []string{objects, packs} {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			return errors.Join(err, refuse("%s is not a folder", dir))
		}
	}
	own := quoted(filepath.Join(w.private.common, "objects"))
	return w.pack(ctx, call{writes: []string{packs}, env: []string{"GIT_OBJECT_DIRECTORY=" + objects, "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + own}}, packs, commit)
}

// pack writes the objects of a commit or a tree that the base does not have to a folder of packs,
// unless there are none.
func (w *Worktree) pack(ctx context.Context, c call, packs, tip string) error {
	c.stdin = tip + "\n^" + w.record.Base + "\n"
	_, err := w.private.git(ctx, c, "pack-objects", "--revs", "--non-empty", "--quiet", "--threads=1", filepath.Join(packs, "pack"))
	return err
}

// createRef makes a new branch. As git does, it locks the ref first.
func (w *Worktree) createRef(name, commit string) (err error) {
	root, err := os.OpenRoot(w.record.CommonDir)
	if err != nil {
		return err
	}
	defer root.Close()
	ref := "refs/heads/" + name
	taken := func(what string) error { return refuse("the branch %s exists already, or %s", name, what) }
	for _, dir := range above(ref) {
		info, err := lstat(root, dir)
		if err == nil && info == nil {
			err = root.Mkdir(filepath.FromSlash(dir), 0o777)
			if errors.Is(err, fs.ErrExist) {
				err = nil
			}
		} else if err == nil && !info.IsDir() {
			err = taken(dir + " does")
		}
		if err != nil {
			return err
		}
	}
	native := filepath.FromSlash(ref)
	lock, err := root.OpenFile(native+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return taken("it is in use")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeIfThere(root, native+".lock")) }()
	_, err = lock.WriteString(commit + "\n")
	if err = errors.Join(err, lock.Close()); err != nil {
		return err
	}
	isPacked, err := w.isPacked(ref)
	if err != nil {
		return err
	}
	info, err := lstat(root, ref)
	switch {
	case err != nil:
		return err
	case isPacked || info != nil:
		return taken("another branch has a conflicting name")
	}
	return root.Rename(native+".lock", native)
}

// isPacked reports whether packed-refs has a ref with this name or a conflicting one, such
// as a/b for a.
func (w *Worktree) isPacked(ref string) (bool, error) {
	data, err := safefile.Read(filepath.Join(w.record.CommonDir, "packed-refs"), 256<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	for line := range strings.Lines(string(data)) {
		_, name, ok := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		if name == ref || isAbove(ref, name) || isAbove(name, ref) {
			return true, nil
		}
	}
	return false, err
}
