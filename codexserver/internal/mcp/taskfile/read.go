package taskfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/claim"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Get returns a task of any server, from its file, and its owner. A task with the owner
// [Gone] stays unfinished forever; the caller decides how to report it. The error wraps
// [ErrUnknown] if the task does not exist.
func (s *Store) Get(id string) (Task, Owner, error) {
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w %.200q", ErrUnknown, id)
	}
	if err != nil {
		return Task{}, NoOwner, err
	}
	defer root.Close()
	return s.load(root, id)
}

// Gone returns the unfinished tasks of servers that are [Gone], the newest first. The error joins the errors of
// files that it cannot read; the other tasks are returned nevertheless.
func (s *Store) Gone() (list []Task, err error) {
	err = s.each(func(root *os.Root, f fs.DirEntry) error {
		id, ok := fileID(f.Name())
		if !ok {
			return nil
		}
		t, o, err := s.load(root, id)
		if err == nil && o == Gone {
			list = append(list, t)
		}
		return err
	})
	slices.SortFunc(list, func(a, b Task) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID)) })
	return list, err
}

// each calls do for each file of the folder, if there is one. It joins the errors, but for files that were removed
// meanwhile.
func (s *Store) each(do func(root *os.Root, f fs.DirEntry) error) error {
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	files, err := fs.ReadDir(root.FS(), ".")
	failed := []error{err}
	for _, f := range files {
		if err := do(root, f); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrUnknown) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// load reads a task and determines its owner.
func (s *Store) load(root *os.Root, id string) (t Task, o Owner, err error) {
	// The server may finish the task after the first read, and then end. It does
	// not write after it has released its lock, so a second read is final.
	for range 2 {
		if t, err = read(root, id); err != nil || t.Finished() {
			return t, NoOwner, err
		}
		if o, err = s.owner(root, t.Server.Instance); err != nil {
			return Task{}, NoOwner, fmt.Errorf("finding the server of task %q: %w", id, err)
		}
		if o != Gone {
			break
		}
	}
	return t, o, nil
}

// owner returns the owner of a server's unfinished tasks.
func (s *Store) owner(root *os.Root, instance string) (Owner, error) {
	s.mu.Lock()
	self := s.lock != nil && instance == s.server.Instance
	s.mu.Unlock()
	if self {
		return Self, nil
	}
	switch lives, err := claim.Lives(root, lockPrefix+instance); {
	case err != nil:
		return NoOwner, err
	case lives:
		return Other, nil
	}
	return Gone, nil
}

// read reads the file of a task.
func read(root *os.Root, id string) (t Task, err error) {
	if checkID(id) != nil {
		return Task{}, fmt.Errorf("%w %.200q", ErrUnknown, id)
	}
	f, err := open(root, id)
	if err == nil {
		defer f.Close()
		var data []byte
		if data, err = f.ReadAll(maxFile); err == nil {
			t, err = decode(data)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Task{}, fmt.Errorf("%w %q", ErrUnknown, id)
	case err != nil:
		return Task{}, fmt.Errorf("reading the file of task %q: %w", id, err)
	case t.ID != id: // such as on a file system that ignores case
		return Task{}, fmt.Errorf("%w %q", ErrUnknown, id)
	}
	return t, nil
}

// Sweep removes what has expired by a time: tasks, and files of servers that are gone. It does not
// remove files that it does not understand; the error joins those of them.
//
// Servers may use the folder meanwhile.
func (s *Store) Sweep(by time.Time) error {
	return s.each(func(root *os.Root, f fs.DirEntry) error {
		info, err := f.Info()
		if err != nil {
			return err
		}
		old := by.Sub(info.ModTime()) > Keep
		if id, isTask := fileID(f.Name()); !isTask {
			err = s.sweepOther(root, f.Name(), old)
		} else if old { // a task is kept for at least that long after it changed
			err = s.sweepTask(root, id, by)
		}
		if err != nil {
			return fmt.Errorf("sweeping %s: %w", f.Name(), err)
		}
		return nil
	})
}

// sweepTask removes a task that has expired.
func (s *Store) sweepTask(root *os.Root, id string, by time.Time) error {
	t, o, err := s.load(root, id)
	if err != nil || o == Self || o == Other || t.Expires().After(by) {
		return err
	}
	return s.remove(root, id)
}

// sweepOther removes what killed servers have left.
func (s *Store) sweepOther(root *os.Root, name string, old bool) error {
	instance, isLock := strings.CutPrefix(name, lockPrefix)
	switch {
	case isLock && aSecret.Get().MatchString(instance):
		if o, err := s.owner(root, instance); err != nil || o != Gone {
			return err
		}
	case strings.HasPrefix(name, tempPrefix) && old:
	default:
		return nil
	}
	return root.Remove(name)
}

const (
	// taskPrefix and taskSuffix enclose a task's id in the name of its file.
	taskPrefix, taskSuffix = "task-", ".json"
	// lockPrefix begins the name of a server's lock.
	lockPrefix = "server-"
	// tempPrefix begins the name of a file that will replace another.
	tempPrefix = ".tmp-"
	// guardFile is locked while a server takes over tasks.
	guardFile = "guard"
	// maxTries is how often to open a file that is replaced each time.
	maxTries = 100
)

func fileName(id string) string { return taskPrefix + id + taskSuffix }

// fileID returns the id in the name of a task's file.
func fileID(name string) (id string, ok bool) {
	name, prefix := strings.CutPrefix(name, taskPrefix)
	id, suffix := strings.CutSuffix(name, taskSuffix)
	return id, prefix && suffix && checkID(id) == nil
}

// foreign returns the error for a file or folder that another user owns or can write to.
func foreign(path string) error {
	return fmt.Errorf("%s belongs to another user, or other users can write to it", path)
}

// open opens the folder. It is opened for each call, because it may be removed at any time.
func (s *Store) open() (*os.Root, error) {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil && !safefile.IsOwn(info) {
		err = foreign(s.dir)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// open opens the file of a task. It fails if the store cannot have written it.
func open(root *os.Root, id string) (f *safefile.File, err error) {
	for range maxTries {
		if f, err = safefile.OpenIn(root, fileName(id), os.O_RDONLY); !errors.Is(err, safefile.ErrReplaced) {
			break
		}
	}
	if err == nil && !safefile.IsOwn(f.Info()) {
		err = errors.Join(foreign(filepath.Join(root.Name(), fileName(id))), f.Close())
	}
	return f, err
}
