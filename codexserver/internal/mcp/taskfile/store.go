package taskfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/internal/claim"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

var (
	// ErrUnknown reports a task that does not exist, or a malformed id.
	ErrUnknown = errors.New("unknown task")
	// ErrNotServed reports a change of a task that the store does not serve: the task has
	// finished, or another server serves it.
	ErrNotServed = errors.New("the task has finished, or is not served by this server")
)

// Store keeps the tasks of a home. It is safe for concurrent use. It keeps nothing about
// finished tasks in memory.
type Store struct {
	dir    string
	mirror safefile.Mirror
	server Server
	most   int // tasks that a sweep leaves, but for unfinished ones

	mu       sync.Mutex
	idle     *sync.Cond // of mu: a change has ended, or the store is closed
	closed   bool
	lock     *claim.Owner    // nil before the first task
	served   map[string]bool // the unfinished tasks of this store
	changing map[string]bool // the tasks that are being written
}

// New returns the store of a home. It does not read or write files. The mirror, unless nil, also keeps the tasks:
// each change is there before it is in the file.
func New(home string, mirror safefile.Mirror) *Store {
	host, _ := os.Hostname() // only for display
	s := &Store{
		dir: filepath.Join(home, "codex-mcp", "tasks"), mirror: safefile.MirrorOf(mirror), most: maxTasks,
		server: Server{Instance: rand.Text(), PID: os.Getpid(), Host: host, Started: now()},
		served: map[string]bool{}, changing: map[string]bool{},
	}
	s.idle = sync.NewCond(&s.mu)
	return s
}

// errClosed is the error of a change by a store that was closed.
var errClosed = fmt.Errorf("%w: %w", ErrNotServed, os.ErrClosed)

// Create writes a new task, which this store serves from then on. It returns the task as
// written. When Create returns, the task survives a crash of the system. If it fails, no
// task was written.
func (s *Store) Create(t Task) (Task, error) {
	t.Created = now()
	t = s.stamp(t)
	return t, s.change("creating", t.ID, func(root *os.Root, serves bool) (bool, error) {
		if serves {
			return true, fs.ErrExist
		}
		err := s.create(root, t)
		return err == nil && !t.Status.Finished(), err
	})
}

// Update replaces a task that this store serves. T is the task that [Store.Create]
// returned, with another status, message or result. Changes of one task happen in
// the order of the calls. When Update returns, the change survives a crash of the system.
//
// Update returns the task as written. After a status that finishes the task the error is an
// [ErrNotServed]. After any other error the file is unchanged, and the caller may call
// Update again.
func (s *Store) Update(t Task) (Task, error) {
	err := s.change("changing", t.ID, func(root *os.Root, serves bool) (bool, error) {
		if !serves {
			return false, ErrNotServed
		}
		t = s.stamp(t)
		err := s.put(root, t)
		return err != nil || !t.Status.Finished(), err
	})
	return t, err
}

// change calls write for a task, after the changes of it that are under way. Write gets the folder and whether
// this store serves the task, and returns whether it does from then on. Doing is for the error.
// [Store.Close] waits for write: a file must not be written after the lock was released,
// because another process may already have reported the task as lost.
func (s *Store) change(doing, id string, write func(root *os.Root, serves bool) (bool, error)) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s task %.200q: %w", doing, id, err)
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.changing[id] && !s.closed {
		s.idle.Wait()
	}
	if s.closed {
		return errClosed
	}
	serves := s.served[id]
	s.changing[id] = true
	defer func() {
		delete(s.changing, id)
		if delete(s.served, id); serves {
			s.served[id] = true
		}
		s.idle.Broadcast()
	}()
	s.mu.Unlock()
	defer s.mu.Lock()
	root, err := s.join()
	if err != nil {
		return err
	}
	defer root.Close()
	serves, err = write(root, serves)
	return err
}

// Close stops serving all tasks. The owner of unfinished ones is [Gone] from then on. Get,
// List and Sweep continue to work.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.idle.Broadcast()
	for len(s.changing) > 0 {
		s.idle.Wait()
	}
	clear(s.served)
	if s.lock == nil {
		return nil
	}
	err := os.Remove(filepath.Join(s.dir, s.lock.Name()))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	err = errors.Join(err, s.lock.Close())
	s.lock = nil
	return err
}

// now returns the time as it is read from a file.
func now() time.Time { return time.Now().UTC().Round(0) }

func (s *Store) stamp(t Task) Task {
	t.Server = s.server
	t.Message = strings.ToValidUTF8(t.Message, "\uFFFD") // it may quote a command
	t.Updated = now()
	t.Expires = time.Time{}
	if t.Status.Finished() {
		t.Expires = t.Updated.Add(Keep)
	}
	return t
}

// create writes the file of a new task, which must not exist.
func (s *Store) create(root *os.Root, t Task) error {
	_, err := root.Lstat(fileName(t.ID))
	if err == nil {
		return fs.ErrExist
	}
	if err = s.put(root, t); err != nil {
		_ = s.mirror.Delete(s.path(t.ID)) // the client does not get this task
		_ = root.Remove(fileName(t.ID))
	}
	return err
}

// remove removes a task, at last its file.
func (s *Store) remove(root *os.Root, id string) error {
	if err := s.mirror.Delete(s.path(id)); err != nil {
		return err
	}
	return root.Remove(fileName(id))
}

// put writes the file of a task, or replaces its content.
func (s *Store) put(root *os.Root, t Task) error {
	data, err := encode(t)
	if err != nil {
		return err
	}
	switch f, err := open(root, t.ID); { // otherwise a link would be followed
	case err == nil:
		_ = f.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := s.mirror.Put(s.path(t.ID), data); err != nil {
		return err
	}
	if err := safefile.Write(s.path(t.ID), data, 0o600); err != nil {
		return err
	}
	return safefile.SyncFolder(root)
}

// path returns the path of a task's file.
func (s *Store) path(id string) string { return filepath.Join(s.dir, fileName(id)) }
