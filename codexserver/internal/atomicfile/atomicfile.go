// Package atomicfile replaces files so that no reader ever sees half of one.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write makes data the content of the file at path, whose folder it creates
// when there is none. A new file has the mode perm, one that is there keeps its
// own, less what perm forbids to group and others. A symbolic link stays, and
// the file that it leads to is replaced.
func Write(path string, data []byte, perm fs.FileMode) error {
	path, err := follow(path)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil {
		perm = info.Mode().Perm() & (perm | 0o700)
	}
	tmp, err := os.CreateTemp(dir, ".tmp-*") // its mode is 0600
	if err != nil {
		return err
	}
	if err := fill(tmp, data, perm); err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

func fill(f *os.File, data []byte, perm fs.FileMode) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync() // or a crash could leave the new name with no content
	}
	return errors.Join(err, f.Close())
}

// follow returns the file that a symbolic link leads to. It returns a path unchanged that
// is not a link or leads nowhere.
func follow(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	return real, err
}
