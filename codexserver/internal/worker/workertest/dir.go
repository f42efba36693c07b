package workertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// epochFile is not of the store. It begins with a dot, as no component does.
const epochFile = ".epoch"

// Dir is a [worker.Store] in a folder, whose files are those of a home. A test may open the folder for
// several writers, and read its files.
type Dir struct {
	// Fail is called before each call of a method, with its name, one at a time. If it returns an error the
	// method returns that. After reports that the method does its work nevertheless. Nil does not fail.
	Fail func(method string) (err error, after bool)
	// End is closed when the connection to the store has ended. Nil has none.
	End chan struct{}

	dir   string
	epoch uint64
}

var _ worker.Store = (*Dir)(nil)

// OpenDir opens the store in a folder for a writer with an epoch. Earlier writers with a lower epoch are
// fenced from then on. It fails with [worker.ErrFenced] if there was one with a higher epoch.
func OpenDir(dir string, epoch uint64) (*Dir, error) {
	d := &Dir{dir: dir, epoch: epoch}
	return d, d.change(context.Background(), "open",
		func() error { return d.write(epochFile, os.O_TRUNC, strconv.AppendUint(nil, epoch, 10)) })
}

// Mirror opens the store in a folder for a home, and its mirror, which ends with the test.
func Mirror(t testing.TB, home, dir string, epoch uint64) (*worker.Mirror, *Dir) {
	t.Helper()
	d := must.Get(OpenDir(dir, epoch))(t)
	m := must.Get(worker.Open(t.Context(), home, d, nil))(t)
	t.Cleanup(m.Close)
	return m, d
}

// Ended returns [Dir.End].
func (d *Dir) Ended() <-chan struct{} { return d.End }

func (d *Dir) path(name string) string { return filepath.Join(d.dir, filepath.FromSlash(name)) }

// alone is held by each call. It is one for all folders, which writers of one test share.
var alone sync.Mutex

// change calls f while no other writer uses a store, unless this one is fenced.
func (d *Dir) change(ctx context.Context, method string, f func() error) error {
	return d.look(ctx, method, func() error {
		text, err := os.ReadFile(d.path(epochFile))
		if last, _ := strconv.ParseUint(string(text), 10, 64); err == nil && last > d.epoch {
			return worker.ErrFenced
		}
		return f()
	})
}

// look calls f while no other writer uses a store.
func (d *Dir) look(ctx context.Context, method string, f func() error) error {
	alone.Lock()
	defer alone.Unlock()
	if d.Fail != nil {
		if err, after := d.Fail(method); err != nil && after {
			return cmp.Or(f(), err)
		} else if err != nil {
			return err
		}
	}
	err := ctx.Err()
	if err == nil {
		err = f()
	}
	switch {
	case err == nil, errors.Is(err, worker.ErrFenced), errors.Is(err, worker.ErrOrder):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", worker.ErrNotFound, err)
	}
	return fmt.Errorf("%w: %w", worker.ErrUnavailable, err)
}

func (d *Dir) Append(ctx context.Context, name string, at int64, data []byte) error {
	if err := worker.CheckWrite(name, data, worker.MaxData); err != nil {
		return err
	}
	return d.change(ctx, "append", func() error {
		info, err := os.Stat(d.path(name))
		if err == nil && info.Size() != at || errors.Is(err, fs.ErrNotExist) && at > 0 {
			return fmt.Errorf("%w: %s does not have %d bytes", worker.ErrOrder, name, at)
		}
		return d.write(name, os.O_APPEND, data)
	})
}

func (d *Dir) Put(ctx context.Context, name string, data []byte) error {
	if err := worker.CheckWrite(name, data, worker.MaxValue); err != nil {
		return err
	}
	return d.change(ctx, "put", func() error { return d.write(name, os.O_TRUNC, data) })
}

func (d *Dir) write(name string, flag int, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(d.path(name)), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(d.path(name), os.O_WRONLY|os.O_CREATE|flag, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func (d *Dir) Delete(ctx context.Context, name string) error {
	if err := worker.CheckName(name); err != nil {
		return err
	}
	return d.change(ctx, "delete", func() error { return os.RemoveAll(d.path(name)) })
}

func (d *Dir) Read(ctx context.Context, name string, at int64, most int) (data []byte, err error) {
	if err := worker.CheckName(name); err != nil {
		return nil, err
	}
	err = d.look(ctx, "read", func() error {
		f, err := os.Open(d.path(name))
		if err != nil {
			return err
		}
		data, err = io.ReadAll(io.NewSectionReader(f, max(at, 0), int64(max(min(most, worker.MaxData), 0))))
		return errors.Join(err, f.Close())
	})
	return data, err
}

func (d *Dir) List(ctx context.Context, after string) (all []worker.Info, err error) {
	err = d.look(ctx, "list", func() error {
		return filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
			name := filepath.ToSlash(strings.TrimPrefix(path, d.dir+string(filepath.Separator)))
			if err != nil || e.IsDir() || name <= after || worker.CheckName(name) != nil {
				return err
			}
			info, err := e.Info()
			if err == nil {
				all = append(all, worker.Info{Name: name, Size: info.Size()})
			}
			return err
		})
	})
	slices.SortFunc(all, func(a, b worker.Info) int { return strings.Compare(a.Name, b.Name) })
	return all[:min(len(all), worker.MaxList)], err
}
