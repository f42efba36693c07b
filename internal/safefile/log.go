package safefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Log is a file to which several processes append whole lines. It stays in the folder in which it
// was opened, whatever becomes of the folder's names, and is always a regular file of this user with
// one name: a link or a pipe in its place is not followed. It is safe for concurrent use.
type Log struct {
	dir  *os.Root
	path string
	max  int64

	mu   sync.Mutex
	f    *os.File
	held bool // another process held the lock for too long at the last write
}

// OpenLog opens the log at path, and makes the file with the mode 0600 if it is missing. Links on
// the way to its folder are followed, now and never again. A file that would become larger than most
// bytes is first renamed to the name with .1, and replaces the file of that name; 0 means no limit.
// The error is a [*KindError] if there is something else than a regular file.
func OpenLog(path string, most int64) (*Log, error) {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	l := &Log{dir: dir, path: path, max: most}
	if err := l.open(); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return l, nil
}

// replacements is how often in a row another process may replace the file.
const replacements = 100

// open opens the file that the name leads to now. After an error the log still has the one before, so
// that a later write can try again.
func (l *Log) open() error {
	for n := 1; ; n++ {
		// it is read to end a line that others left
		f, err := OpenIn(l.dir, filepath.Base(l.path), os.O_RDWR|os.O_APPEND|os.O_CREATE)
		if errors.Is(err, ErrReplaced) && n < replacements {
			continue
		}
		if err != nil {
			return err
		}
		if err := f.alone(); err != nil {
			return errors.Join(err, f.Close())
		}
		before := l.f
		if l.f = f.file; before != nil {
			return before.Close()
		}
		return nil
	}
}

// alone returns an error unless the file belongs to this user and has one name.
func (f *File) alone() error {
	if err := owned(f.info); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if others, err := f.HasOtherNames(); err != nil || others {
		return errors.Join(err, fmt.Errorf("%s has other names (hard links): remove it", f.path))
	}
	return nil
}

// Name returns the path with which the log was opened.
func (l *Log) Name() string { return l.path }

// Dir returns the folder in which the log was opened. It is closed with the log.
func (l *Log) Dir() *os.Root { return l.dir }

// Write implements [io.Writer] for whole lines. After an error nothing of them is in the file.
func (l *Log) Write(lines []byte) (int, error) { return l.write(lines, false) }

// WriteSync is [Log.Write], and returns when the lines are on the disk.
func (l *Log) WriteSync(lines []byte) (int, error) { return l.write(lines, true) }

func (l *Log) write(lines []byte, sync bool) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := filepath.Base(l.path)
	for range replacements {
		locked, err := l.lock()
		if err != nil {
			return 0, err
		}
		size, err := l.size()
		fits := !locked || l.max == 0 || size == 0 || size+int64(len(lines)) <= l.max
		if err == nil && (fits || l.dir.Rename(name, name+".1") != nil) {
			if err = l.append(lines, size, sync); err != nil && locked {
				err = errors.Join(err, l.f.Truncate(size))
			}
			if locked {
				_ = Unlock(l.f)
			}
			if err != nil {
				return 0, err
			}
			return len(lines), nil
		}
		if locked {
			_ = Unlock(l.f)
		}
		if err := l.open(); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("%s is replaced again and again", l.path)
}

// size returns the size of the file, or [ErrReplaced] if the name leads to another one now.
func (l *Log) size() (int64, error) {
	mine, err := l.f.Stat()
	found, failed := l.dir.Lstat(filepath.Base(l.path))
	if err != nil || failed != nil || !os.SameFile(mine, found) {
		return 0, ErrReplaced
	}
	return found.Size(), nil
}

// append appends lines to the file, which has this size. What a killed process left without an end gets one.
func (l *Log) append(lines []byte, size int64, sync bool) error {
	if size > 0 {
		var last [1]byte
		if _, err := l.f.ReadAt(last[:], size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			lines = append([]byte{'\n'}, lines...)
		}
	}
	_, err := l.f.Write(lines)
	if err == nil && sync {
		err = l.f.Sync()
	}
	if err == nil && sync && size == 0 { // perhaps a new file
		err = SyncFolder(l.dir)
	}
	return err
}

const (
	// patience is how long a write waits for the lock of other processes.
	patience = time.Second
	// pause is the time between two attempts. A write takes less.
	pause = time.Millisecond
)

// lock locks the file against other processes if it is or becomes free in time. If it stays locked by another
// process, which need only be able to read it, locked is false: a line can be appended, but the file can neither be
// renamed nor shortened.
func (l *Log) lock() (locked bool, err error) {
	for deadline := time.Now().Add(patience); ; <-time.After(pause) {
		err := Lock(l.f)
		if !errors.Is(err, ErrLocked) {
			l.held = false
			return err == nil, err
		}
		if l.held || time.Now().After(deadline) { // the next write does not wait again
			l.held = true
			return false, nil
		}
	}
}

// Close closes the log.
func (l *Log) Close() error { return errors.Join(l.f.Close(), l.dir.Close()) }
