package safefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Write replaces the content of the file at path with data. It creates a missing
// file with the mode perm, and a missing folder. An existing file keeps its mode,
// less the group and other bits that perm lacks. A symbolic link stays: its target
// is replaced.
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
	if err := again(func() error { return os.Rename(tmp.Name(), path) }, isBusy); err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

// again calls f until its error is not that somebody else has the file open, for about a second. Windows does not
// replace a file that is open, and a scanner for viruses opens each new one for a moment.
func again(f func() error, isBusy func(error) bool) error {
	err := f()
	for pause := time.Millisecond; isBusy(err) && pause <= time.Second; pause *= 2 {
		time.Sleep(pause)
		err = f()
	}
	return err
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

// follow resolves the symbolic links of path. It returns path unchanged if there is no
// file.
func follow(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	return real, err
}
