package patch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// ChangedError reports that a file or a folder was changed after the plan was made.
type ChangedError struct {
	// Path is the absolute path.
	Path string
}

// Error implements error.
func (e *ChangedError) Error() string {
	return e.Path + " was changed after the patch was read; read it again"
}

// Apply writes the plan's files where they were when the plan was made. It follows no
// symbolic link on the way, and makes missing folders.
//
// If a file or a folder above it was changed, Apply writes nothing and returns a
// [*ChangedError]. If a file cannot be written, Apply restores the files that it has
// written, and the error wraps an [*fs.PathError].
func (p *Plan) Apply() (err error) {
	w := writer{roots: map[string]*os.Root{}}
	defer func() { err = errors.Join(err, w.close()) }()
	for _, file := range p.files {
		if err := w.check(file); err != nil {
			return err
		}
	}
	for _, file := range p.files {
		var err error
		switch {
		case equal(file.before, file.after) && !file.added:
		case file.after == nil:
			err = w.remove(file)
		default:
			err = w.write(file)
		}
		if err != nil {
			return errors.Join(err, w.putBack())
		}
	}
	return nil
}

func equal(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// writer writes the files of one plan.
type writer struct {
	roots map[string]*os.Root // open folders by path
	undo  []func() error      // restores each file, in the order of writing
}

func (w *writer) close() error {
	var failed []error
	for _, root := range w.roots {
		failed = append(failed, root.Close())
	}
	return errors.Join(failed...)
}

// putBack undoes everything, the last first.
func (w *writer) putBack() error {
	var failed []error
	for i := len(w.undo) - 1; i >= 0; i-- {
		if err := w.undo[i](); err != nil {
			failed = append(failed, fmt.Errorf("put back: %w", err))
		}
	}
	return errors.Join(failed...)
}

// root opens the folder of a place.
func (w *writer) root(f *folder) (*os.Root, error) {
	if root := w.roots[f.path]; root != nil {
		return root, nil
	}
	root, err := f.open()
	if err != nil {
		return nil, err
	}
	w.roots[f.path] = root
	return root, nil
}

// check fails if a file was changed.
func (w *writer) check(file *plannedFile) error {
	root, err := w.root(file.target.folder)
	if err != nil {
		return err
	}
	if file.before == nil {
		// The file and the first missing folder above it must still be missing.
		if _, err := root.Lstat(file.target.rest[0]); !errors.Is(err, fs.ErrNotExist) {
			return changed(file, err)
		}
		return nil
	}
	f, err := w.open(root, file, os.O_RDONLY)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if file.after != nil || file.entry == file.target {
		return nil
	}
	if root, err = w.root(file.entry.folder); err != nil {
		return err
	}
	return w.checkEntry(root, file)
}

// changed returns the error for a file that may have been changed. Err is the error of the
// check, or nil if the file was replaced.
func changed(file *plannedFile, err error) error {
	var kind *safefile.KindError
	var size *safefile.SizeError
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) || errors.Is(err, safefile.ErrReplaced) ||
		errors.As(err, &kind) || errors.As(err, &size) {
		return &ChangedError{Path: file.shown}
	}
	return err
}

// open opens an existing file and checks that it was not changed.
func (w *writer) open(root *os.Root, file *plannedFile, flag int) (*safefile.File, error) {
	f, err := safefile.OpenIn(root, file.target.name(), flag)
	if err != nil {
		return nil, changed(file, err)
	}
	content, err := f.ReadAll(maxFileSize)
	hardLinked := false
	if err == nil {
		hardLinked, err = f.HasOtherNames()
	}
	switch {
	case err != nil:
		err = changed(file, err)
	case hardLinked && !file.hardLinked && file.writes(): // the question did not say so
		err = changed(file, nil)
	case !os.SameFile(f.Info(), file.target.info), string(content) != *file.before:
		err = changed(file, nil)
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

// checkEntry fails if the name of a file to remove was replaced.
func (w *writer) checkEntry(root *os.Root, file *plannedFile) error {
	info, err := root.Lstat(file.entry.name())
	if err != nil || !os.SameFile(info, file.entry.info) {
		return changed(file, err)
	}
	if file.entry.link == "" {
		return nil
	}
	if link, err := root.Readlink(file.entry.name()); err != nil || link != file.entry.link {
		return changed(file, nil)
	}
	return nil
}

func (w *writer) write(file *plannedFile) error {
	if file.before == nil {
		return w.create(file)
	}
	root, err := w.root(file.target.folder)
	if err != nil {
		return err
	}
	f, err := w.open(root, file, os.O_RDWR)
	if err != nil {
		return err
	}
	w.undo = append(w.undo, func() error {
		f, err := safefile.OpenIn(root, file.target.name(), os.O_RDWR)
		if err != nil {
			return err
		}
		if !os.SameFile(f.Info(), file.target.info) {
			return errors.Join(changed(file, nil), f.Close())
		}
		return errors.Join(f.Overwrite(*file.before), setMode(f, file.target.info.Mode().Perm()), f.Close())
	})
	return errors.Join(f.Overwrite(*file.after), setMode(f, file.mode), f.Close())
}

// setMode gives a file the mode of the one that moved there. It leaves it alone for 0.
func setMode(f *safefile.File, mode fs.FileMode) error {
	if mode == 0 || mode == f.Info().Mode().Perm() {
		return nil
	}
	return f.Chmod(mode)
}

// create makes a new file, and missing folders above it.
func (w *writer) create(file *plannedFile) error {
	root, err := w.root(file.target.folder)
	if err != nil {
		return err
	}
	path := file.target.folder.path
	for _, name := range file.target.rest[:len(file.target.rest)-1] {
		path = filepath.Join(path, name)
		next := w.roots[path] // already made for an earlier file
		if next == nil {
			if next, err = w.makeFolder(root, name, file); err != nil {
				return err
			}
			w.roots[path] = next
		}
		root = next
	}
	name := file.target.name()
	// An exclusive creation follows no link.
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, cmp.Or(file.mode, 0o666))
	if err != nil {
		return changed(file, err)
	}
	w.undo = append(w.undo, func() error { return root.Remove(name) })
	if file.mode != 0 { // whatever the umask says
		err = f.Chmod(file.mode)
	}
	if err == nil {
		_, err = f.WriteString(*file.after)
	}
	return errors.Join(err, f.Close())
}

// makeFolder makes a folder in root and opens it. It fails if the folder is replaced
// meanwhile.
func (w *writer) makeFolder(root *os.Root, name string, file *plannedFile) (*os.Root, error) {
	if err := root.Mkdir(name, 0o777); err != nil {
		return nil, changed(file, err)
	}
	w.undo = append(w.undo, func() error { return root.Remove(name) })
	made, err := root.Lstat(name)
	if err != nil || !made.IsDir() {
		return nil, changed(file, err)
	}
	next, err := root.OpenRoot(name + string(filepath.Separator) + ".") // see folder.open
	if err != nil {
		return nil, err
	}
	if info, err := next.Stat("."); err != nil || !os.SameFile(made, info) {
		return nil, errors.Join(changed(file, err), next.Close())
	}
	return next, nil
}

// remove removes a file, or the symbolic link that leads to it.
func (w *writer) remove(file *plannedFile) error {
	root, err := w.root(file.entry.folder)
	if err != nil {
		return err
	}
	if err := w.checkEntry(root, file); err != nil {
		return err
	}
	name := file.entry.name()
	if err := root.Remove(name); err != nil {
		return err
	}
	w.undo = append(w.undo, func() error {
		if file.entry.link != "" {
			err = root.Symlink(file.entry.link, name)
		} else {
			err = recreate(root, name, *file.before, file.entry.info.Mode().Perm())
		}
		if err != nil {
			return err
		}
		// The plan may be applied again, to the restored file.
		file.entry.info, err = root.Lstat(name)
		return err
	})
	return nil
}

func recreate(root *os.Root, name, content string, perm fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}
