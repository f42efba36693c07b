package safefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// KindError reports a file that is not a regular file.
type KindError struct {
	// Path is the file.
	Path string
	// Mode has the file's type bits.
	Mode fs.FileMode
}

// Error implements error.
func (e *KindError) Error() string {
	return fmt.Sprintf("%s is %s, not a regular file", e.Path, kind(e.Mode))
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// SizeError reports a file that is larger than its reader allows.
type SizeError struct {
	// Path is the file.
	Path string
	// Max is the limit in bytes.
	Max int64
}

// Error implements error.
func (e *SizeError) Error() string {
	return fmt.Sprintf("%s has more than %d bytes", e.Path, e.Max)
}

// ErrReplaced is wrapped by the error of [OpenIn] if the file was replaced between the
// check and the opening.
var ErrReplaced = errors.New("the file was replaced while it was opened")

// File is an open regular file.
type File struct {
	file *os.File
	info fs.FileInfo
	path string
}

// Open opens the regular file that path leads to, for reading. It follows
// symbolic links. The error is a [*KindError] or a [*fs.PathError].
func Open(path string) (*File, error) {
	// Check the kind first, because opening a device can have effects.
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &KindError{Path: path, Mode: info.Mode()}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	return check(f, path, nil)
}

// OpenIn opens the regular file at name in root with the flag [os.O_RDONLY] or
// [os.O_RDWR], or makes it with [os.O_CREATE] and the mode 0600 if it is missing. If name is a
// symbolic link, the error is a [*KindError]. Links on the way are followed within root.
func OpenIn(root *os.Root, name string, flag int) (*File, error) {
	path, create := filepath.Join(root.Name(), name), flag&os.O_CREATE != 0
	info, err := root.Lstat(name)
	switch {
	case create && errors.Is(err, fs.ErrNotExist):
		flag |= os.O_EXCL // which follows no link
	case err != nil:
		return nil, at(path, err)
	case !info.Mode().IsRegular():
		return nil, &KindError{Path: path, Mode: info.Mode()}
	default:
		flag &^= os.O_CREATE
	}
	opened, err := root.OpenFile(name, flag|openFlags, 0o600)
	switch {
	case create && (errors.Is(err, fs.ErrExist) || info != nil && errors.Is(err, fs.ErrNotExist)):
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrReplaced}
	case err != nil:
		return nil, at(path, err)
	}
	return check(opened, path, info)
}

// at replaces the path in an error of an [os.Root] by the absolute one.
func at(path string, err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return &fs.PathError{Op: e.Op, Path: path, Err: e.Err}
	}
	return err
}

// check closes f unless it is a regular file, and the one that before describes if that is not nil.
func check(f *os.File, path string, before fs.FileInfo) (*File, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = &KindError{Path: path, Mode: info.Mode()}
	case before != nil && !os.SameFile(before, info):
		err = &fs.PathError{Op: "open", Path: path, Err: ErrReplaced}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &File{file: f, info: info, path: path}, nil
}

// Info describes the file as it was when it was opened.
func (f *File) Info() fs.FileInfo { return f.info }

// Name returns the path of the file without symbolic links: on Linux where it is now, by whatever path it was opened.
func (f *File) Name() string {
	if name := nameOf(f); name != "" {
		return name
	}
	if real, err := filepath.EvalSymlinks(f.path); err == nil {
		return real
	}
	return f.path
}

// SyscallConn implements [syscall.Conn], for locking the file.
func (f *File) SyscallConn() (syscall.RawConn, error) { return f.file.SyscallConn() }

// Read implements [io.Reader]. It fails if it would have to wait. Some regular files of the
// kernel, such as its log, have no end.
func (f *File) Read(p []byte) (int, error) {
	n, err := readNow(f.file, p)
	if err != nil && !errors.Is(err, io.EOF) {
		return max(n, 0), at(f.path, err)
	}
	return n, err
}

// ReadAt implements [io.ReaderAt].
func (f *File) ReadAt(p []byte, at int64) (int, error) { return f.file.ReadAt(p, at) }

// ReadAll reads the rest of the file. The error is a [*SizeError] if that has more than max
// bytes.
func (f *File) ReadAll(max int64) ([]byte, error) {
	if f.info.Size() > max {
		return nil, &SizeError{Path: f.path, Max: max}
	}
	data := bytes.NewBuffer(make([]byte, 0, f.info.Size()+bytes.MinRead)) // so that it need not grow
	if n, err := data.ReadFrom(io.LimitReader(f, max+1)); err != nil {
		return nil, err
	} else if n > max {
		return nil, &SizeError{Path: f.path, Max: max}
	}
	return data.Bytes(), nil
}

// Overwrite replaces the content of a file that is open for writing.
func (f *File) Overwrite(content string) error {
	if err := f.file.Truncate(0); err != nil {
		return err
	}
	_, err := f.file.WriteAt([]byte(content), 0)
	return err
}

// Chmod changes the mode of the file.
func (f *File) Chmod(mode fs.FileMode) error { return f.file.Chmod(mode) }

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Read reads the regular file that path leads to. The error is a [*SizeError] if the file
// has more than max bytes, or an error of [Open].
func Read(path string, max int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	data, err := f.ReadAll(max)
	return data, errors.Join(err, f.Close())
}
