package git

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
)

// span is where the content of a file is in the one that keeps those of many.
type span struct{ at, size int64 }

// keep keeps the content of the files that differ from the index.
func (l *look) keep() (err error) {
	l.kept = map[string]span{}
	if l.contents, err = os.Create(filepath.Join(l.scratch, "kept")); err != nil {
		return err
	}
	from, err := openFolder(l.root)
	if err != nil {
		return err
	}
	defer from.close()
	w, at := bufio.NewWriterSize(l.contents, 1<<16), int64(0)
	for _, name := range slices.Sorted(maps.Keys(l.before.seen)) {
		s := l.before.seen[name]
		if !s.stored() || l.before.others[name] != (other{}) {
			continue
		}
		data, err := from.read(name, s)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			l.before.seen[name] = stat{}
			continue
		case err != nil:
			l.before.others[name] = other{why: notStored, is: s}
			continue
		}
		l.kept[name] = span{at, int64(len(data))}
		at += int64(len(data))
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return w.Flush()
}

// folder reads and writes files of a folder, and has the one open in which it did so last. No link leads out of it.
type folder struct {
	top, last *os.Root
	dir       string // of last
}

func openFolder(path string) (*folder, error) {
	top, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	last, err := top.OpenRoot(".")
	return &folder{top, last, "."}, err
}

func (f *folder) close() { _ = errors.Join(f.last.Close(), f.top.Close()) }

// enter opens the folder of a file.
func (f *folder) enter(name string) error {
	dir := path.Dir(name)
	if dir == f.dir {
		return nil
	}
	in, err := f.top.OpenRoot(filepath.FromSlash(dir))
	if err == nil {
		_ = f.last.Close()
		f.last, f.dir = in, dir
	}
	return err
}

// read returns what a file has, or where a link leads.
func (f *folder) read(name string, s stat) (data []byte, err error) {
	if err := f.enter(name); err != nil {
		return nil, err
	}
	name = path.Base(name)
	if s.is(modeLink) {
		target, err := f.last.Readlink(name)
		return []byte(target), err
	}
	file, err := f.last.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe may have taken its place
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxContent) {
		err = fs.ErrInvalid
	}
	if err != nil {
		return nil, err
	}
	data = make([]byte, info.Size())
	n, err := io.ReadFull(file, data)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return data[:n], err
}

// put writes a file or a link, and nothing outside of the folder: a link may have taken the place of a folder of the same name
// while they were read.
func (f *folder) put(name string, s stat, data []byte) error {
	err := f.enter(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err = f.top.MkdirAll(filepath.FromSlash(path.Dir(name)), 0o700); err == nil {
			err = f.enter(name)
		}
	}
	if err != nil {
		return err
	}
	if name = path.Base(name); s.is(modeLink) {
		return f.last.Symlink(string(data), name)
	}
	return f.last.WriteFile(name, data, 0o600|fs.FileMode(s.mode)&0o100)
}
