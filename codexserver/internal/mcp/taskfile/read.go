package taskfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
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
		return Task{}, NoOwner, fmt.Errorf("%w %q", ErrUnknown, id)
	}
	if err != nil {
		return Task{}, NoOwner, err
	}
	defer root.Close()
	return s.load(root, id, s.owner)
}

// Entry is a task in a list.
type Entry struct {
	// Task has neither Result nor Error.
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
	files, err := entries(root)
	if err != nil {
		return nil, err
	}
	owners := map[string]Owner{} // each server is checked once
	owner := func(root *os.Root, instance string) (Owner, error) {
		if o, ok := owners[instance]; ok {
			return o, nil
		}
		o, err := s.owner(root, instance)
		if err == nil {
			owners[instance] = o
		}
		return o, err
	}
	var list []Entry
	var failed []error
	for _, f := range files {
		id, ok := fileID(f.Name())
		if !ok {
			continue
		}
		t, o, err := s.load(root, id, owner)
		if err != nil {
			if !errors.Is(err, ErrUnknown) { // which was removed meanwhile
				failed = append(failed, err)
			}
			continue
		}
		t.Result, t.Error = nil, nil
		list = append(list, Entry{Task: t, Owner: o})
	}
	sort.SliceStable(list, func(i, j int) bool {
		a, b := &list[i].Task, &list[j].Task
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID)) < 0
	})
	return list, errors.Join(failed...)
}

func entries(root *os.Root) ([]fs.DirEntry, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	files, err := f.ReadDir(-1)
	return files, errors.Join(err, f.Close())
}

// load reads a task and determines its owner.
func (s *Store) load(root *os.Root, id string, owner func(*os.Root, string) (Owner, error)) (Task, Owner, error) {
	t, err := read(root, id)
	if err != nil || t.Status.Finished() {
		return t, NoOwner, err
	}
	o, err := owner(root, t.Server.Instance)
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

// maxTries is how often to open a file that is replaced each time.
const maxTries = 100

func read(root *os.Root, id string) (Task, error) {
	t, err := readOnce(root, id)
	for tries := 1; errors.Is(err, safefile.ErrReplaced) && tries < maxTries; tries++ {
		t, err = readOnce(root, id)
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

func readOnce(root *os.Root, id string) (Task, error) {
	f, err := safefile.OpenIn(root, fileName(id), os.O_RDONLY)
	if err != nil {
		return Task{}, err
	}
	defer f.Close()
	if !isOwn(f.Info()) {
		return Task{}, &ForeignError{Path: filepath.Join(root.Name(), fileName(id))}
	}
	data, err := f.ReadAll(maxFile)
	if err != nil {
		return Task{}, err
	}
	return decode(data)
}
