// Package claim tells whether the process that owns something still lives.
//
// What a process owns, such as a task, names a file that the process has locked as
// long as it lives. The system removes the lock when the process ends, however it ends. So a process
// needs one descriptor for all that it owns, and what a dead process owned is free.
package claim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Owner is the file of this process.
type Owner struct {
	file *os.File
	name string
}

// temp begins the name of a file that is not locked yet.
const temp = ".tmp-"

// New makes the file of this process in root, with a content, and locks it. The name must be new and
// unguessable. The file gets it when it is whole and locked.
func New(root *os.Root, name, content string) (*Owner, error) {
	f, err := root.OpenFile(temp+name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err = safefile.Lock(f); err == nil {
		_, err = f.WriteString(content)
	}
	if err == nil {
		err = root.Rename(temp+name, name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), root.Remove(temp+name))
	}
	return &Owner{f, name}, nil
}

// Name returns the name of the file.
func (o *Owner) Name() string { return o.name }

// IsIn reports whether the file still has its name in root. Without it, other processes conclude that
// this one is gone.
func (o *Owner) IsIn(root *os.Root) bool {
	mine, err := o.file.Stat()
	found, failed := root.Lstat(o.name)
	return err == nil && failed == nil && os.SameFile(mine, found)
}

// Close unlocks the file. Its name remains. A process that is about to be started may have a copy of
// the descriptor for a moment, so closing the file would not be enough.
func (o *Owner) Close() error { return errors.Join(safefile.Unlock(o.file), o.file.Close()) }

// Lives reports whether the process lives whose file has that name in root. It does not if there is
// no regular file. After another error it is not known.
func Lives(root *os.Root, name string) (bool, error) {
	f, err := safefile.OpenIn(root, name, os.O_RDONLY)
	if _, odd := errors.AsType[*safefile.KindError](err); odd || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = safefile.Share(f)
	if errors.Is(err, safefile.ErrLocked) {
		return true, nil
	}
	return false, err
}

// Take locks the file of a process that has ended, so that nobody else takes it until it is closed. It returns nil if the
// process lives, another one has taken the file, or there is none of that name.
func Take(root *os.Root, name string) (*Owner, error) {
	f, err := root.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o := &Owner{f, name}
	if err = safefile.Lock(f); err == nil && o.IsIn(root) {
		return o, nil
	}
	if errors.Is(err, safefile.ErrLocked) {
		err = nil
	}
	return nil, errors.Join(err, f.Close())
}

// tick is the time between two attempts to lock a file.
const tick = 5 * time.Millisecond

// Wait locks a file that other processes lock for a short time each, and waits for them until ctx
// ends. The error then wraps [safefile.ErrLocked]. Closing the file unlocks it.
func Wait(ctx context.Context, f syscall.Conn) error {
	for {
		err := safefile.Lock(f)
		if !errors.Is(err, safefile.ErrLocked) {
			return err
		}
		select {
		case <-time.After(tick):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", err, context.Cause(ctx))
		}
	}
}

// patience is how long [Alone] waits for another process.
const patience = 5 * time.Second

// Alone runs f while no other process runs Alone with the same file, which it makes if need be, for a short
// change of what is beside it. If another one does so for five seconds, the error wraps
// [safefile.ErrLocked].
func Alone(path string, f func() error) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer root.Close()
	lock, err := root.OpenFile(filepath.Base(path), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // which unlocks it
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	if err := Wait(ctx, lock); err != nil {
		return fmt.Errorf("%s: %w", lock.Name(), err)
	}
	return f()
}
