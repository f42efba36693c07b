package repo

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// UnfinishedError reports that the changes of a worktree may be written only in part.
type UnfinishedError struct {
	// ThreadID is the thread of the worktree.
	ThreadID string
	// Root is the caller's tree. Branch was checked out there, or it is a commit.
	Root, Branch string
	// Err is the reason, or nil if the process ended.
	Err error
}

// Error implements error.
func (e *UnfinishedError) Error() string {
	why := "the server ended meanwhile"
	if e.Err != nil {
		why = e.Err.Error()
	}
	return fmt.Sprintf("worktree: apply did not finish (%s): some of the changes of conversation %s may be in %s, on %s, and others not. "+
		"Check with git what is there. The action apply writes the rest; the action branch commits all of the changes to a new branch", why, e.ThreadID, shown(e.Root), e.Branch)
}

// Unwrap returns the reason.
func (e *UnfinishedError) Unwrap() error { return e.Err }

// Apply writes the plan's files to the caller's tree. It returns a [*ChangedError] and writes
// nothing if one was changed since the plan was made, or if the tree was replaced. If it
// fails after it has written a file, the error is an [*UnfinishedError], which
// [Store.Unfinished] repeats until a later plan of the worktree is applied. The index and
// HEAD do not change.
func (p *Plan) Apply(ctx context.Context) error {
	w := p.worktree
	ctx, _, end, err := w.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	unlock, err := w.store.lockTree(ctx, w.record.Root)
	if err != nil {
		return err
	}
	defer unlock()
	root, err := os.OpenRoot(w.record.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	if info, err := root.Stat("."); err != nil || !os.SameFile(info, p.info) {
		return errors.Join(err, &ChangedError{Path: w.record.Root})
	}
	if err := p.unchanged(root); err != nil {
		return err
	}
	before := w.record.Applying
	if before != "" {
		if err := p.clean(root); err != nil {
			return err
		}
	}
	if len(p.files) > 0 {
		if err := w.update(func(r *record) { r.Applying = r.place() }); err != nil {
			return err
		}
		if err := p.write(ctx, root); err != nil {
			if p.written == 0 {
				return errors.Join(err, w.update(func(r *record) { r.Applying = before }))
			}
			return w.record.unfinished(err)
		}
	}
	return w.update(func(r *record) {
		r.Applying = ""
		if !p.isPart {
			r.Saved = append(r.Saved, p.tree)
		}
	})
}

// clean removes the temporary file that a process left that was killed.
func (p *Plan) clean(root *os.Root) error {
	for _, name := range p.changed {
		info, err := look(root, path.Dir(name))
		if err == nil && info != nil && info.IsDir() {
			err = removeIfThere(root, p.temporary(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// temporary returns the name of the temporary file next to a file: that of the worktree.
func (p *Plan) temporary(name string) string {
	return filepath.Join(filepath.FromSlash(path.Dir(name)), ".codex-mcp-"+p.worktree.record.ID)
}

// maxPlace is how many bytes the name of a place has at most.
const maxPlace = 1000

// place returns what is checked out in the caller's tree.
func (r *record) place() string {
	commit, branch, _ := readHead(r.GitDir, r.CommonDir)
	switch {
	case branch != "" && isPlain(branch) && len(branch) < maxPlace:
		return "branch " + branch
	case commit != "":
		return "commit " + commit
	}
	return "an unknown branch"
}

func (r *record) unfinished(err error) *UnfinishedError {
	return &UnfinishedError{ThreadID: r.ThreadID, Root: r.Root, Branch: r.Applying, Err: err}
}

// errBusy is why the changes may be written only in part while a process has locked the
// worktree: it may write them, or be about to end after it was killed.
var errBusy = errors.New("another process may still write")

// Unfinished returns the worktrees whose changes may be written only in part. It does not make
// the folders of the store.
func (s Store) Unfinished() (found []*UnfinishedError) {
	if _, err := os.Lstat(s.Records); err != nil {
		return nil
	}
	all, _ := s.List() // Find and Recover report what it cannot read
	for _, w := range all {
		if w.record.Applying == "" {
			continue
		}
		unlock, err := w.store.tryLock(w.record.ID)
		if err != nil {
			found = append(found, w.record.unfinished(errBusy))
			continue
		}
		if fresh, err := w.store.load(w.record.ID); err == nil && fresh.record.Applying != "" {
			found = append(found, fresh.record.unfinished(nil))
		}
		unlock()
	}
	return found
}

// lockTree locks a caller's tree against other merges.
func (s Store) lockTree(ctx context.Context, root string) (unlock func(), err error) {
	return s.lock(ctx, fmt.Sprintf("tree-%x", sha256.Sum256([]byte(root)))[:len("tree-")+32])
}

// write removes and writes the files. It removes first, so that a new file can take the name
// of a folder.
func (p *Plan) write(ctx context.Context, root *os.Root) error {
	for _, remove := range []bool{true, false} {
		for _, f := range p.files {
			if f.after.exists() == remove {
				continue
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := p.put(root, f); err != nil {
				return err
			}
			p.written++
			p.step()
		}
	}
	for _, f := range p.files {
		if !f.after.exists() {
			prune(root, f.path)
		}
	}
	return nil
}

// prune removes the folders above a removed file that are empty.
func prune(root *os.Root, name string) {
	for _, dir := range slices.Backward(above(name)) {
		if info, err := look(root, dir); err == nil && info != nil && info.IsDir() {
			_ = root.Remove(filepath.FromSlash(dir)) // fails unless it is empty
		}
	}
}

// put removes or writes one file in one step, so that it is never half written. If it fails,
// it has changed nothing.
func (p *Plan) put(root *os.Root, f *plannedFile) (failed error) {
	now, err := read(root, f.path)
	var place *placeError
	if errors.As(err, &place) || err == nil && now != f.before {
		return &ChangedError{Path: p.absolute(f.path)}
	}
	if err != nil {
		return err
	}
	if !f.after.exists() {
		return root.Remove(filepath.FromSlash(f.path))
	}
	for _, dir := range above(f.path) {
		switch err := root.Mkdir(filepath.FromSlash(dir), 0o777); {
		case err == nil:
			defer func() {
				if failed != nil {
					_ = root.Remove(filepath.FromSlash(dir)) // fails unless it is empty
				}
			}()
		case !errors.Is(err, fs.ErrExist):
			return err
		}
	}
	temporary := p.temporary(f.path)
	if err := removeIfThere(root, temporary); err != nil {
		return err
	}
	err = putFile(root, f.path, f.after, temporary, !f.before.exists(), f.before.isFile, p.step)
	if errors.Is(err, fs.ErrExist) {
		return &ChangedError{Path: p.absolute(f.path)}
	}
	return err
}

// putFile writes a file through a temporary one next to it. A new file does not replace
// another one. Written is called after the temporary file is written, and after it has the
// other name besides.
func putFile(root *os.Root, name string, f file, temporary string, isNew, exact bool, written func()) error {
	name = filepath.FromSlash(name)
	if err := create(root, temporary, f, exact); err != nil {
		return errors.Join(err, removeIfThere(root, temporary))
	}
	written()
	if isNew {
		// A hard link does not replace a file, but not every file system has them.
		err := root.Link(temporary, name)
		written()
		if err == nil || errors.Is(err, fs.ErrExist) {
			return errors.Join(err, root.Remove(temporary))
		}
		if _, err := root.Lstat(name); err == nil {
			return errors.Join(fs.ErrExist, root.Remove(temporary))
		}
	}
	if err := root.Rename(temporary, name); err != nil {
		return errors.Join(err, removeIfThere(root, temporary))
	}
	return nil
}

// create makes a file and fails if it exists. With exact the umask does not change its
// permissions.
func create(root *os.Root, name string, f file, exact bool) error {
	if f.isLink {
		return root.Symlink(f.data, name)
	}
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.perm)
	if err != nil {
		return err
	}
	_, err = out.WriteString(f.data)
	if err == nil && exact {
		err = out.Chmod(f.perm)
	}
	return errors.Join(err, out.Close())
}

func removeIfThere(root *os.Root, name string) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// isAbove reports whether name lies below dir. Both have slashes.
func isAbove(dir, name string) bool {
	return len(name) > len(dir) && name[:len(dir)] == dir && name[len(dir)] == '/'
}

// above returns the parent folders of name, the topmost first.
func above(name string) []string {
	dir := path.Dir(name)
	if dir == "." {
		return nil
	}
	return append(above(dir), dir)
}
