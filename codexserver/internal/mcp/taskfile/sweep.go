package taskfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// maxTasks is how many tasks of all servers are kept. The finished ones among the oldest are removed.
const maxTasks = 4096

// minLockAge is the age at which a lock may be removed. A new file may not be locked yet.
const minLockAge = time.Hour

// Sweep removes what has expired by a time: tasks, and files of servers that are gone. A task of such a server
// expires [Keep] after the first sweep that finds it, which sets its Expires. Sweep does not
// remove files that it does not understand; the error joins those of them.
//
// Servers may use the folder meanwhile. Sweep ends early when ctx ends.
func (s *Store) Sweep(ctx context.Context, by time.Time) error {
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sweeping the tasks: %w", err)
	}
	defer root.Close()
	files, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return fmt.Errorf("sweeping the tasks: %w", err)
	}
	var infos []fs.FileInfo
	for _, f := range files {
		if info, err := f.Info(); err == nil { // or it was removed meanwhile
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	var failed []error
	for tasks, i := 0, 0; i < len(infos); i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		id, isTask := fileID(infos[i].Name())
		if isTask {
			tasks++
			err = s.sweepTask(root, id, by, by.Sub(infos[i].ModTime()), tasks > s.most)
		} else {
			err = s.sweepOther(root, infos[i].Name(), by.Sub(infos[i].ModTime()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrUnknown) {
			failed = append(failed, fmt.Errorf("sweeping %s: %w", infos[i].Name(), err))
		}
	}
	return errors.Join(failed...)
}

// sweepTask removes a task that has expired, or that is finished and one too many. Its file has an age.
func (s *Store) sweepTask(root *os.Root, id string, by time.Time, age time.Duration, tooMany bool) error {
	// A file is kept for at least that long after its task changed, so younger files need
	// not be read.
	if age <= Keep && !tooMany {
		return nil
	}
	t, o, err := s.load(root, id)
	switch {
	case err != nil:
		return err
	case o == NoOwner && (tooMany || !t.Expires.After(by)):
	case o != Gone || age <= Keep:
		return nil
	case t.Expires.IsZero():
		t.Expires = by.UTC().Round(0).Add(Keep)
		return s.put(root, t)
	case t.Expires.After(by):
		return nil
	}
	return s.remove(root, id)
}

// sweepOther removes what killed servers have left.
func (s *Store) sweepOther(root *os.Root, name string, age time.Duration) error {
	instance, isLock := strings.CutPrefix(name, lockPrefix)
	switch {
	case isLock && isSecret(instance) && age > minLockAge:
		if o, err := s.owner(root, instance); err != nil || o != Gone {
			return err
		}
	case strings.HasPrefix(name, tempPrefix) && age > Keep:
	default:
		return nil
	}
	return root.Remove(name)
}
