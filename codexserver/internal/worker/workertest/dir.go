package workertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/internal/claim"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Names of files that are not of the store. They begin with a dot, as no component does.
const (
	lockFile  = ".lock"
	epochFile = ".epoch"
	tempFile  = ".tmp"
)

// Dir is a [worker.Store] in a folder, such as one on a disk of another machine. Its files are those of
// a home. Processes on several machines may use the folder if its file system has locks. A crash
// of the system that has the disk may lose the newest files.
type Dir struct {
	root  *os.Root
	epoch uint64

	mu   sync.Mutex
	lock *os.File // locked by each call
}

var _ worker.Store = (*Dir)(nil)

// OpenDir opens the store in a folder, which it makes if missing, for a writer with an epoch.
// Earlier writers with a lower epoch are fenced from then on. It fails with [worker.ErrFenced] if there
// was one with a higher epoch.
func OpenDir(dir string, epoch uint64) (*Dir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	d := &Dir{root: root, epoch: epoch}
	if d.lock, err = root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	err = d.change(context.Background(), func() error { return d.replace(epochFile, strconv.AppendUint(nil, epoch, 10)) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store %s: %w", dir, err), d.Close())
	}
	return d, nil
}

// Close closes the folder.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.lock.Close(), d.root.Close())
}

// change calls f while no other writer changes the store, unless this one is fenced.
func (d *Dir) change(ctx context.Context, f func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return unavailable(err)
	}
	if err := claim.Wait(ctx, d.lock); err != nil {
		return unavailable(err)
	}
	defer func() { _ = safefile.Unlock(d.lock) }() // at the latest when it is closed
	text, err := d.root.ReadFile(epochFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unavailable(err)
	}
	if err == nil {
		last, err := strconv.ParseUint(string(text), 10, 64)
		if err != nil {
			return unavailable(err)
		}
		if last > d.epoch {
			return worker.ErrFenced
		}
	}
	return unavailable(f())
}

// unavailable returns an error of the system as one of the store.
func unavailable(err error) error {
	for _, known := range []error{nil, worker.ErrFull, worker.ErrFenced, worker.ErrNotFound, worker.ErrOrder, worker.ErrName} {
		if errors.Is(err, known) {
			return err
		}
	}
	if safefile.IsFull(err) {
		return fmt.Errorf("%w: %w", worker.ErrFull, err)
	}
	return fmt.Errorf("%w: %w", worker.ErrUnavailable, err)
}

// Append implements [worker.Store].
func (d *Dir) Append(ctx context.Context, name string, at int64, data []byte) error {
	if err := worker.CheckWrite(name, data, worker.MaxData); err != nil {
		return err
	}
	return d.change(ctx, func() error {
		flag := os.O_RDWR
		if at == 0 {
			flag |= os.O_CREATE
			if err := d.root.MkdirAll(path.Dir(name), 0o700); err != nil {
				return err
			}
		}
		f, err := d.root.OpenFile(name, flag, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %s has none, not %d bytes", worker.ErrOrder, name, at)
		}
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err == nil && info.Size() != at {
			err = fmt.Errorf("%w: %s has %d, not %d bytes", worker.ErrOrder, name, info.Size(), at)
		} else if err == nil {
			if _, err = f.WriteAt(data, at); err == nil {
				err = f.Sync()
			}
			if err != nil {
				err = errors.Join(err, f.Truncate(at))
			}
		}
		return errors.Join(err, f.Close())
	})
}

// Put implements [worker.Store].
func (d *Dir) Put(ctx context.Context, name string, data []byte) error {
	if err := worker.CheckWrite(name, data, worker.MaxValue); err != nil {
		return err
	}
	return d.change(ctx, func() error { return d.replace(name, data) })
}

func (d *Dir) replace(name string, data []byte) error {
	if err := d.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := d.root.OpenFile(tempFile, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return d.root.Rename(tempFile, name)
}

// Delete implements [worker.Store].
func (d *Dir) Delete(ctx context.Context, name string) error {
	if err := worker.CheckName(name); err != nil {
		return err
	}
	return d.change(ctx, func() error {
		if err := d.root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// Read implements [worker.Store].
func (d *Dir) Read(ctx context.Context, name string, at int64, most int) ([]byte, error) {
	if err := worker.CheckName(name); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, unavailable(err)
	}
	f, err := d.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", name, worker.ErrNotFound)
	}
	if err != nil {
		return nil, unavailable(err)
	}
	data, err := io.ReadAll(io.NewSectionReader(f, max(at, 0), int64(max(min(most, worker.MaxData), 0))))
	return data, unavailable(errors.Join(err, f.Close()))
}

// List implements [worker.Store].
func (d *Dir) List(ctx context.Context, after string) ([]worker.Info, error) {
	var all []worker.Info
	err := fs.WalkDir(d.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case !e.Type().IsRegular() || name <= after || worker.CheckName(name) != nil:
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			all = append(all, worker.Info{Name: name, Size: info.Size()})
		}
		return err
	})
	if err != nil {
		return nil, unavailable(err)
	}
	slices.SortFunc(all, func(a, b worker.Info) int { return strings.Compare(a.Name, b.Name) })
	return all[:min(len(all), worker.MaxList)], nil
}
