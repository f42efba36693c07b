package patch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// errChanged reports that the file or the folder at a path was changed after the plan was made.
func errChanged(path string) error {
	return errors.New(path + " was changed after the patch was read; read it again")
}

// Apply writes the plan's files where they were when the plan was made. It follows no
// symbolic link on the way, and makes missing folders.
//
// If a file or a folder above it was changed, Apply writes nothing. If a file cannot be written, Apply
// restores the files that it has written, and the error wraps an [*fs.PathError].
func (p *Plan) Apply() error {
	for _, file := range p.files {
		if err := file.check(); err != nil {
			return err
		}
	}
	w := writer{made: map[string]*folder{}}
	for _, file := range p.files {
		err := w.put(file)
		if err == nil {
			continue
		}
		for _, undo := range slices.Backward(w.undo) {
			if failed := undo(); failed != nil {
				err = errors.Join(err, fmt.Errorf("put back: %w", failed))
			}
		}
		return err
	}
	return nil
}

func (f *plannedFile) check() error {
	err := f.target.folder.do(func(root *os.Root) error {
		if f.folds { // what is there is the file that moves
			return nil
		}
		if f.before == nil {
			// The file and the first missing folder above it must still be missing.
			if _, err := root.Lstat(f.target.rest[0]); !errors.Is(err, fs.ErrNotExist) {
				return f.changed(err)
			}
			return nil
		}
		file, err := f.open(root, os.O_RDONLY)
		if err != nil {
			return err
		}
		return file.Close()
	})
	if err != nil || f.after != nil || f.entry == f.target {
		return err
	}
	return f.entry.folder.do(f.checkEntry)
}

// changed returns the error for a file that may have been changed. Err is that of the check, nil if it was replaced.
func (f *plannedFile) changed(err error) error {
	var kind *safefile.KindError
	var size *safefile.SizeError
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) ||
		errors.Is(err, safefile.ErrReplaced) ||
		errors.As(err, &kind) || errors.As(err, &size) {
		return errChanged(f.shown)
	}
	return err
}

// open opens an existing file and checks that it was not changed.
func (f *plannedFile) open(root *os.Root, flag int) (*safefile.File, error) {
	file, err := safefile.OpenIn(root, f.target.name(), flag)
	if err != nil {
		return nil, f.changed(err)
	}
	content, err := file.ReadAll(maxFileSize)
	hardLinked, linkErr := file.HasOtherNames()
	switch err = errors.Join(err, linkErr); {
	case err != nil:
	case hardLinked && !f.hardLinked && f.writes(): // the question did not say so
	case !os.SameFile(file.Info(), f.target.info), string(content) != *f.before:
	default:
		return file, nil
	}
	return nil, errors.Join(f.changed(err), file.Close())
}

// checkEntry fails if the name of a file to remove was replaced.
func (f *plannedFile) checkEntry(root *os.Root) error {
	info, err := root.Lstat(f.entry.name())
	if err != nil || !os.SameFile(info, f.entry.info) {
		return f.changed(err)
	}
	if f.entry.link != "" {
		if link, err := root.Readlink(f.entry.name()); err != nil || link != f.entry.link {
			return f.changed(nil)
		}
	}
	return nil
}

type writer struct {
	made map[string]*folder // by path
	undo []func() error     // in the order of writing
}

// later has a folder restored if the plan cannot be written.
func (w *writer) later(at *folder, undo func(root *os.Root) error) {
	w.undo = append(w.undo, func() error { return at.do(undo) })
}

// put writes, makes or removes a file, unless it stays.
func (w *writer) put(f *plannedFile) error {
	at := f.target.folder
	switch {
	case equal(f.before, f.after) && !f.added && f.program == nil:
		return nil
	case f.after == nil:
		return f.entry.folder.do(func(root *os.Root) error { return w.remove(f, root) })
	case f.before != nil:
		return at.do(func(root *os.Root) error { return w.write(f, root) })
	}
	for _, name := range f.target.rest[:len(f.target.rest)-1] {
		path := filepath.Join(at.path, name)
		if w.made[path] == nil {
			if err := at.do(func(root *os.Root) error { return w.makeFolder(f, at, root, name) }); err != nil {
				return err
			}
		}
		at = w.made[path]
	}
	return at.do(func(root *os.Root) error {
		if err := fill(root, f.target.name(), *f.after, f.usual(), f.mode); err != nil {
			return f.changed(err)
		}
		w.later(at, func(root *os.Root) error { return root.Remove(f.target.name()) })
		return nil
	})
}

func (w *writer) write(f *plannedFile, root *os.Root) error {
	file, err := f.open(root, os.O_RDWR)
	if err != nil {
		return err
	}
	w.later(f.target.folder, func(root *os.Root) error {
		file, err := safefile.OpenIn(root, f.target.name(), os.O_RDWR)
		if err != nil {
			return err
		}
		if !os.SameFile(file.Info(), f.target.info) {
			return errors.Join(f.changed(nil), file.Close())
		}
		return errors.Join(file.Overwrite(*f.before), setMode(file, f.target.info.Mode().Perm()), file.Close())
	})
	return errors.Join(file.Overwrite(*f.after), setMode(file, f.newMode(file.Info().Mode().Perm())), file.Close())
}

// usual is the mode of a new file, of which the umask takes.
func (f *plannedFile) usual() fs.FileMode {
	if f.program != nil && *f.program {
		return 0o777
	}
	return 0o666
}

// newMode returns the mode that a file gets, 0 if its own stays. Who can read a program can run it.
func (f *plannedFile) newMode(old fs.FileMode) fs.FileMode {
	switch {
	case f.program == nil:
		return f.mode
	case *f.program:
		return old | old&0o444>>2
	}
	return old &^ 0o111
}

// setMode gives a file the mode of the one that moved there. It leaves it alone for 0.
func setMode(file *safefile.File, mode fs.FileMode) error {
	if mode == 0 || mode == file.Info().Mode().Perm() {
		return nil
	}
	return file.Chmod(mode)
}

// makeFolder makes a folder in root, which is that of at, and notes which it is.
func (w *writer) makeFolder(f *plannedFile, at *folder, root *os.Root, name string) error {
	if err := root.Mkdir(name, 0o777); err != nil {
		return f.changed(err)
	}
	w.later(at, func(root *os.Root) error { return root.Remove(name) })
	info, err := root.Lstat(name)
	if err != nil || !info.IsDir() {
		return f.changed(err)
	}
	path := filepath.Join(at.path, name)
	w.made[path] = &folder{path, info}
	return nil
}

// fill makes a file. With the mode 0 it has the usual one, any other it has whatever the umask says.
func fill(root *os.Root, name, content string, usual, mode fs.FileMode) error {
	// An exclusive creation follows no link.
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, cmp.Or(mode, usual))
	if err != nil {
		return err
	}
	if mode != 0 {
		err = file.Chmod(mode)
	}
	if err == nil {
		_, err = file.WriteString(content)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		err = errors.Join(err, root.Remove(name))
	}
	return err
}

// remove removes a file, or the symbolic link that leads to it.
func (w *writer) remove(f *plannedFile, root *os.Root) error {
	if err := f.checkEntry(root); err != nil {
		return err
	}
	name := f.entry.name()
	if err := root.Remove(name); err != nil {
		return err
	}
	w.later(f.entry.folder, func(root *os.Root) (err error) {
		if f.entry.link != "" {
			err = root.Symlink(f.entry.link, name)
		} else {
			err = fill(root, name, *f.before, 0, f.entry.info.Mode().Perm())
		}
		if err == nil { // the plan may be applied again, to the restored file
			f.entry.info, err = root.Lstat(name)
		}
		return err
	})
	return nil
}
