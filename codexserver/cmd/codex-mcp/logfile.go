package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// logFile is a file to which several processes append whole lines. A file that would become
// larger than max bytes is first renamed to the name with .1, and replaces the file of that name.
// It is safe for concurrent use.
type logFile struct {
	path string
	max  int64 // 0 means no limit

	mu sync.Mutex
	f  *os.File
}

// openLog opens the file at path, which it makes if missing.
func openLog(path string, most int64) (*logFile, error) {
	l := &logFile{path: path, max: most}
	return l, l.open()
}

func (l *logFile) open() (err error) {
	l.f, err = os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return err
}

// Write implements [io.Writer]. After an error nothing of the line is in the file.
func (l *logFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	size, unlock, err := l.lock()
	if err != nil {
		return 0, err
	}
	defer func() {
		if unlock != nil {
			unlock()
		}
	}()
	for l.max > 0 && size > 0 && size+int64(len(line)) > l.max && os.Rename(l.path, l.path+".1") == nil {
		unlock()
		if size, unlock, err = l.lock(); err != nil {
			return 0, err
		}
	}
	n, err := l.f.Write(line)
	if err != nil && n > 0 {
		n, err = 0, errors.Join(err, l.f.Truncate(size))
	}
	return n, err
}

// lock locks the file at the path against other processes, and opens it again if it is another
// one now. A device is neither locked nor renamed.
func (l *logFile) lock() (size int64, unlock func(), err error) {
	for range 100 {
		mine, err := l.f.Stat()
		if err != nil {
			return 0, nil, err
		}
		if !mine.Mode().IsRegular() {
			return 0, func() {}, nil
		}
		f := l.f
		if err := safefile.Await(f); err != nil {
			return 0, nil, err
		}
		unlock := func() { _ = safefile.Unlock(f) }
		if found, err := os.Stat(l.path); err == nil && os.SameFile(mine, found) {
			return found.Size(), unlock, nil
		}
		unlock()
		if err := errors.Join(f.Close(), l.open()); err != nil {
			return 0, nil, err
		}
	}
	return 0, nil, fmt.Errorf("%s is replaced again and again", l.path)
}

// Close closes the file.
func (l *logFile) Close() error { return l.f.Close() }

// sink returns the inherited file, or else opens the file at path; nil without one. Closing it
// closes what it opened.
func (c *configuration) sink(inherited *os.File, path string) (w io.Writer, end func() error, err error) {
	switch {
	case inherited != nil:
		return inherited, inherited.Close, nil
	case path == "":
		return nil, func() error { return nil }, nil
	}
	l, err := openLog(path, c.settings.Keep.Log)
	if err != nil {
		return nil, nil, err
	}
	return l, l.Close, nil
}
