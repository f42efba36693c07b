package patch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ChangedError says that a file is not as it was when the plan was made.
type ChangedError struct {
	// Path is the absolute path.
	Path string
}

// Error implements error.
func (e *ChangedError) Error() string {
	return e.Path + " was changed after the patch was read; read it again"
}

// Apply writes the plan's files. Missing folders are made. If a file is not as
// it was when the plan was made, or cannot be written, all is put back and the
// error says which one: a [*ChangedError] or one that wraps an [*fs.PathError].
func (p *Plan) Apply() error {
	for _, file := range p.files {
		now, err := readFile(file.path)
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if !equal(now, file.before) {
			return &ChangedError{Path: file.shown}
		}
	}
	var done undo
	for _, file := range p.files {
		var err error
		switch {
		case equal(file.before, file.after) && !file.added:
		case file.after == nil:
			err = done.remove(file)
		default:
			err = done.write(file)
		}
		if err != nil {
			return errors.Join(err, done.all())
		}
	}
	return nil
}

func equal(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// undo is how to put back what was done, in order.
type undo []func() error

func (u *undo) write(file *plannedFile) error {
	if err := u.makeDirs(filepath.Dir(file.path)); err != nil {
		return err
	}
	f, err := os.OpenFile(file.path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	*u = append(*u, func() error {
		if file.before == nil {
			return os.Remove(file.path)
		}
		return os.WriteFile(file.path, []byte(*file.before), 0)
	})
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteString(*file.after)
	}
	return errors.Join(err, f.Close())
}

func (u *undo) remove(file *plannedFile) error {
	info, err := os.Lstat(file.path)
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(file.path); err != nil {
			return err
		}
	}
	if err := os.Remove(file.path); err != nil {
		return err
	}
	*u = append(*u, func() error {
		if link != "" {
			return os.Symlink(link, file.path)
		}
		return os.WriteFile(file.path, []byte(*file.before), info.Mode().Perm())
	})
	return nil
}

func (u *undo) makeDirs(dir string) error {
	if _, err := os.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := u.makeDirs(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	*u = append(*u, func() error { return os.Remove(dir) })
	return nil
}

// all puts everything back, the last first.
func (u undo) all() error {
	var failed []error
	for i := len(u) - 1; i >= 0; i-- {
		if err := u[i](); err != nil {
			failed = append(failed, fmt.Errorf("put back: %w", err))
		}
	}
	return errors.Join(failed...)
}

// Within says that everything that the plan writes or removes lies below one of
// the folders, symbolic links followed. The folders are absolute.
func (p *Plan) Within(folders []string) bool {
	roots := resolveAll(folders)
	for _, file := range p.files {
		path, err := file.target()
		if err != nil || !slices.ContainsFunc(roots, func(root string) bool { return path != root && below(path, root) }) {
			return false
		}
	}
	return true
}

// Touches says that something that the plan writes or removes is, or lies below,
// one of the paths, symbolic links followed; also when that cannot be told.
func (p *Plan) Touches(paths []string) bool {
	roots := resolveAll(paths)
	for _, file := range p.files {
		path, err := file.target()
		if err != nil || slices.ContainsFunc(roots, func(root string) bool { return below(path, root) }) {
			return true
		}
	}
	return false
}

// target is what is really written, behind links, or removed, the link itself.
func (f *plannedFile) target() (string, error) { return resolve(f.path, f.after != nil) }

func resolveAll(paths []string) []string {
	var real []string
	for _, path := range paths {
		if path, err := resolve(path, true); err == nil {
			real = append(real, path)
		}
	}
	return real
}

// below says that path is root or lies below it.
func below(path, root string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// resolve follows the symbolic links of path as far as it exists, also one that
// leads to nothing. The last part is followed only when last is true.
func resolve(path string, last bool) (string, error) {
	for range 40 {
		dir, name := filepath.Split(filepath.Clean(path))
		if name == "" {
			return path, nil
		}
		dir, err := resolveDir(dir)
		if err != nil {
			return "", err
		}
		path = filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && (!last || info.Mode()&fs.ModeSymlink == 0) {
			return path, nil
		}
		if err != nil {
			return "", err
		}
		target, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			target = dir + string(filepath.Separator) + target
		}
		path = target
	}
	return "", fmt.Errorf("%s: too many symbolic links", path)
}

// resolveDir resolves a folder that may be missing.
func resolveDir(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	return resolve(dir, true)
}
