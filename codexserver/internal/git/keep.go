package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// span is where the content of a file is in the one that keeps those of many, of which git makes objects when they are
// needed: to make an object costs ten times as much as to read the file.
type span struct{ at, size int64 }

// keep keeps the content of files, and the commits of submodules.
func (l *look) keep(ctx context.Context, names []string) error {
	l.kept = map[string]span{}
	if len(names) == 0 {
		return nil
	}
	var err error
	if l.contents, err = os.Create(filepath.Join(l.scratch, "kept")); err != nil {
		return err
	}
	w, at := bufio.NewWriterSize(l.contents, 1<<16), int64(0)
	var modules []string
	var data []byte
	for _, name := range names {
		s := l.before.seen[name]
		switch {
		case s.is(modeFolder):
			modules = append(modules, name)
			continue
		case s.is(modeLink):
			var target string
			target, err = os.Readlink(l.path(name))
			data = append(data[:0], target...)
		default:
			data, err = appendFile(data[:0], l.path(name), s.size)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			l.before.seen[name] = stat{}
			continue
		case err != nil:
			l.before.others[name] = other{notStored, s}
			continue
		}
		l.kept[name] = span{at, int64(len(data))}
		at += int64(len(data))
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	if len(modules) > 0 {
		l.listed = ""
		if _, err = l.git(ctx, call{stdin: zeros(modules)}, "update-index", "-z", "--stdin"); err != nil {
			return err
		}
	}
	return w.Flush()
}

// same reports whether a file of the same size as at the look has the content that is kept.
func (l *look) same(name string) bool {
	at, ok := l.kept[name]
	if !ok || !l.before.seen[name].is(modeFile) {
		return false
	}
	was := make([]byte, at.size)
	_, err := l.contents.ReadAt(was, at.at)
	now, err2 := appendFile(nil, l.path(name), at.size)
	return err == nil && err2 == nil && bytes.Equal(was, now)
}

// restore makes the index have files as they were at the look. Git reads them in a working tree of the mirror, and their
// attributes there, or else in the index.
func (l *look) restore(ctx context.Context, names []string) error {
	var present, gone []string
	tree := filepath.Join(l.scratch, "tree")
	for _, name := range names {
		if _, ok := l.kept[name]; ok {
			present = append(present, name)
		} else {
			gone = append(gone, name)
		}
	}
	if len(names) > 0 {
		l.listed = ""
	}
	if len(gone) > 0 {
		if _, err := l.git(ctx, call{stdin: zeros(gone)}, "update-index", "--force-remove", "-z", "--stdin"); err != nil {
			return err
		}
	}
	if len(present) == 0 {
		return nil
	}
	if err := l.writeTo(tree, present); err != nil {
		return err
	}
	_, err := l.git(ctx, call{tree: tree, options: onePack, stdin: zeros(present)}, "update-index", "--add", "--replace", "-z", "--stdin")
	return err
}

// writeTo writes files and links as they were into a new folder, and nothing outside of it: a link may have taken the place of
// a folder of the same name while they were read.
func (l *look) writeTo(folder string, names []string) error {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range names {
		at, s := l.kept[name], l.before.seen[name]
		data := make([]byte, at.size)
		if _, err := l.contents.ReadAt(data, at.at); err != nil {
			return err
		}
		file := filepath.FromSlash(name)
		if err := root.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if s.is(modeLink) {
			err = root.Symlink(string(data), file)
		} else {
			err = root.WriteFile(file, data, 0o600|fs.FileMode(s.mode)&0o100)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// onePack makes git write one pack. An object file for each of many files takes three times as long.
// Git writes large files to a pack, so all files count as large.
var onePack = []string{"-c", "core.bigFileThreshold=1", "-c", "core.multiPackIndex=false"} // git looks for such an index for each file
