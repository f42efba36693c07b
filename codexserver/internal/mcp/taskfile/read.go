package taskfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Get returns a task of any server, from its file, and its owner. A task with the owner
// [Gone] stays unfinished forever; the caller decides how to report it. The error wraps
// [ErrUnknown] if the task does not exist.
func (s *Store) Get(id string) (Task, Owner, error) {
	if checkID(id) != nil {
		return Task{}, NoOwner, fmt.Errorf("%w %.200q", ErrUnknown, id)
	}
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w %q", ErrUnknown, id)
	}
	if err != nil {
		return Task{}, NoOwner, err
	}
	defer root.Close()
	return s.load(root, id)
}

// Entry is a task in a list.
type Entry struct {
	// Task has no Result.
	Task Task
	// Owner is the owner of the task.
	Owner Owner
}

// List returns all tasks of all servers, the newest first. The error joins the errors of
// files that it cannot read; the other tasks are returned nevertheless.
func (s *Store) List() ([]Entry, error) {
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var list []Entry
	var failed []error
	for _, f := range files {
		id, ok := fileID(f.Name())
		if !ok {
			continue
		}
		t, o, err := s.load(root, id)
		if err != nil {
			if !errors.Is(err, ErrUnknown) { // which was removed meanwhile
				failed = append(failed, err)
			}
			continue
		}
		t.Result = nil
		list = append(list, Entry{Task: t, Owner: o})
	}
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(b.Task.Created.Compare(a.Task.Created), cmp.Compare(a.Task.ID, b.Task.ID))
	})
	return list, errors.Join(failed...)
}

// load reads a task and determines its owner.
func (s *Store) load(root *os.Root, id string) (Task, Owner, error) {
	t, err := read(root, id)
	if err != nil || t.Status.Finished() {
		return t, NoOwner, err
	}
	o, err := s.owner(root, t.Server.Instance)
	if err != nil {
		return Task{}, NoOwner, fmt.Errorf("finding the server of task %q: %w", id, err)
	}
	if o != Gone {
		return t, o, nil
	}
	// The server may have finished the task after the first read, and then ended. It does
	// not write after it has released its lock, so a second read is final.
	t, err = read(root, id)
	if err != nil || t.Status.Finished() {
		return t, NoOwner, err
	}
	return t, Gone, nil
}

// read reads the file of a task.
func read(root *os.Root, id string) (t Task, err error) {
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
	case t.ID != id && strings.EqualFold(t.ID, id): // on a file system that ignores case
		return Task{}, fmt.Errorf("%w %q", ErrUnknown, id)
	case t.ID != id:
		return Task{}, fmt.Errorf("reading the file of task %q: member id names another task, %q", id, t.ID)
	}
	return t, nil
}
