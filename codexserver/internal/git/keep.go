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
	from, err := openReader(l.root)
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

// reader reads files of a folder, and has the one open in which it read last. No link leads out of it.
type reader struct {
	top, last *os.Root
	dir       string // of last
}

func openReader(folder string) (*reader, error) {
	top, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	last, err := top.OpenRoot(".")
	return &reader{top, last, "."}, err
}

func (r *reader) close() { _ = errors.Join(r.last.Close(), r.top.Close()) }

// read returns what a file has, or where a link leads.
func (r *reader) read(name string, s stat) (data []byte, err error) {
	if dir := path.Dir(name); dir != r.dir {
		in, err := r.top.OpenRoot(filepath.FromSlash(dir))
		if err != nil {
			return nil, err
		}
		_ = r.last.Close()
		r.last, r.dir = in, dir
	}
	name = path.Base(name)
	if s.is(modeLink) {
		target, err := r.last.Readlink(name)
		return []byte(target), err
	}
	f, err := r.last.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe may have taken its place
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxContent) {
		err = fs.ErrInvalid
	}
	if err != nil {
		return nil, err
	}
	data = make([]byte, info.Size())
	n, err := io.ReadFull(f, data)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return data[:n], err
}

// put writes a file or a link into a folder, and nothing outside of it: a link may have taken the place of a folder of the
// same name while they were read.
func put(folder *os.Root, name string, s stat, data []byte) error {
	file := filepath.FromSlash(name)
	if err := folder.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if s.is(modeLink) {
		return folder.Symlink(string(data), file)
	}
	return folder.WriteFile(file, data, 0o600|fs.FileMode(s.mode)&0o100)
}
