package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Apply writes the plan's files to the caller's tree: all of them, or none. It returns a
// [*ChangedError] if one was changed since the plan was made, or if the tree was replaced.
// The index and HEAD do not change.
func (p *Plan) Apply(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	w := p.worktree
	end, err := w.begin(ctx)
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
	if len(p.files) > 0 {
		if err := p.write(ctx, root); err != nil {
			return err
		}
	}
	if p.isPart {
		return nil
	}
	return w.update(func(r *record) { r.Saved = append(r.Saved, p.tree) })
}

// write records the old files in a journal and then writes the new ones.
func (p *Plan) write(ctx context.Context, root *os.Root) error {
	j, err := p.journal(root)
	if err != nil {
		return err
	}
	if err := j.begin(); err != nil {
		return err
	}
	if err := p.run(ctx, root, j); err != nil {
		return errors.Join(err, j.undo(root))
	}
	return j.end()
}

// run removes and writes the files. It removes first, so that a new file can take the
// name of a folder.
func (p *Plan) run(ctx context.Context, root *os.Root, j *journal) error {
	for _, remove := range []bool{true, false} {
		for i, f := range p.files {
			if f.after.exists() == remove {
				continue
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := p.put(root, j, i); err != nil {
				return err
			}
			p.step()
		}
	}
	j.prune(root)
	return nil
}

// put removes or writes one file in one step, so that it is never half written.
func (p *Plan) put(root *os.Root, j *journal, i int) error {
	f := p.files[i]
	now, err := read(root, f.path)
	var place *placeError
	if errors.As(err, &place) || err == nil && now != f.before {
		return &ChangedError{Path: p.absolute(f.path)}
	}
	if err != nil {
		return err
	}
	j.touched[i] = true
	if !f.after.exists() {
		return root.Remove(filepath.FromSlash(f.path))
	}
	for _, dir := range j.Made {
		if isAbove(dir.Path, f.path) {
			if err := root.Mkdir(filepath.FromSlash(dir.Path), 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	}
	err = putFile(root, f.path, f.after, j.temporary(f.path, i), !f.before.exists(), f.before.isFile, p.step)
	if errors.Is(err, fs.ErrExist) {
		j.touched[i] = false
		return &ChangedError{Path: p.absolute(f.path)}
	}
	return err
}

// putFile writes a file through a temporary one next to it. A new file does not replace
// another one. Written is called after the temporary file is written.
func putFile(root *os.Root, name string, f file, temporary string, isNew, exact bool, written func()) error {
	name = filepath.FromSlash(name)
	if err := create(root, temporary, f, exact); err != nil {
		return errors.Join(err, removeIfThere(root, temporary))
	}
	written()
	if isNew {
		// A hard link does not replace a file, but not every file system has them.
		err := root.Link(temporary, name)
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

// temporary returns the name of the temporary file for file i, name.
func (j *journal) temporary(name string, i int) string {
	return filepath.FromSlash(path.Join(path.Dir(name), fmt.Sprintf(".codex-mcp-%s-%d", j.Tag, i)))
}
