package taskfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// maxFinished is how many finished tasks of all servers are kept. The oldest are removed.
const maxFinished = 4096

// minLockAge is the age at which a lock may be removed. A new file may not be locked yet.
const minLockAge = time.Hour

// Sweep removes expired tasks, and files of servers that are gone. A task of such a server
// expires [Keep] after the first sweep that finds it, which sets its Expires. Sweep does not
// remove files that it does not understand, but logs them.
//
// Servers may use the folder meanwhile. Sweep ends early when ctx ends.
func (s *Store) Sweep(ctx context.Context) error {
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sweeping the tasks: %w", err)
	}
	defer root.Close()
	files, err := entries(root)
	if err != nil {
		return fmt.Errorf("sweeping the tasks: %w", err)
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.sweep(root, f); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrUnknown) {
			s.logger.Warn("a file among the tasks was not swept", slog.String("path", filepath.Join(s.dir, f.Name())), slog.Any("error", err))
		}
	}
	return s.thin(ctx, root, files)
}

// thin removes the oldest finished tasks if there are too many.
func (s *Store) thin(ctx context.Context, root *os.Root, files []fs.DirEntry) error {
	if len(files) <= s.most {
		return nil
	}
	var finished []*Task
	for _, f := range files {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		id, ok := fileID(f.Name())
		if !ok {
			continue
		}
		if t, err := read(root, id); err == nil && t.Status.Finished() {
			finished = append(finished, &Task{ID: id, Updated: t.Updated})
		}
	}
	slices.SortFunc(finished, func(a, b *Task) int { return a.Updated.Compare(b.Updated) })
	for _, t := range finished[:max(0, len(finished)-s.most)] {
		if err := s.remove(root, t.ID); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("sweeping the tasks: %w", err)
		}
	}
	return nil
}

func (s *Store) sweep(root *os.Root, f fs.DirEntry) error {
	info, err := f.Info()
	if err != nil {
		return err
	}
	age := s.now().Sub(info.ModTime())
	if instance, ok := strings.CutPrefix(f.Name(), lockPrefix); ok && isSecret(instance) && age > minLockAge {
		o, err := s.owner(root, instance)
		if err != nil || o != Gone {
			return err
		}
		return root.Remove(f.Name())
	}
	// A file is kept for at least that long after its task changed, so younger files need
	// not be read.
	if age <= Keep {
		return nil
	}
	if strings.HasPrefix(f.Name(), tempPrefix) {
		return root.Remove(f.Name())
	}
	id, ok := fileID(f.Name())
	if !ok {
		return nil
	}
	t, o, err := s.load(root, id, s.owner)
	switch {
	case err != nil:
		return err
	case o == Self, o == Other:
		return nil
	case t.Expires.IsZero():
		t.Expires = s.time().Add(Keep)
		return s.put(root, t)
	case t.Expires.After(s.now()):
		return nil
	}
	return s.remove(root, id)
}
