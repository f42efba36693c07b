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
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

var (
	// ErrUnknown reports a task that does not exist, or a malformed id.
	ErrUnknown = errors.New("unknown task")
	// ErrNotServed reports a change by a closed store, or a task that cannot be taken over: it has
	// finished, or another server serves it, or takes it over at this moment.
	ErrNotServed = errors.New("the task has finished, or is not served by this server")
)

// Store keeps the tasks of a home. It is safe for concurrent use, by one goroutine at a time for each task. It keeps
// nothing about finished tasks in memory.
type Store struct {
	dir    string
	mirror safefile.Mirror
	server Server

	changes sync.RWMutex // read-locked by each change
	closed  bool         // guarded by changes

	mu   sync.Mutex
	lock *claim.Owner // nil before the first task
}

// New returns the store of a home. It does not read or write files. The mirror, unless nil, also keeps the tasks:
// each change is there before it is in the file.
func New(home string, mirror safefile.Mirror) *Store {
	return &Store{
		dir: filepath.Join(home, "codex-mcp", "tasks"), mirror: safefile.MirrorOf(mirror),
		server: Server{Instance: rand.Text(), PID: os.Getpid()},
	}
}

// Create writes a new task, which this store serves from then on. It returns the task as
// written. When Create returns, the task survives a crash of the system. If it fails, no
// task was written.
func (s *Store) Create(t Task) (Task, error) {
	t = s.own(t)
	t.Created = t.Updated
	return t, s.change("creating", t.ID, func(root *os.Root) error {
		err := s.put(root, t)
		if err != nil {
			_ = s.mirror.Delete(s.path(t.ID)) // the client does not get this task
			_ = root.Remove(fileName(t.ID))
		}
		return err
	})
}

// Update replaces an unfinished task that this store serves. T is the task that [Store.Create] or [Store.Adopt]
// returned, with another status, message or result. When Update returns, the change survives a crash of the system.
//
// Update returns the task as written, or as it was to be: after an error the file is unchanged, and the caller may
// call Update again.
func (s *Store) Update(t Task) (Task, error) {
	t = s.own(t)
	return t, s.change("changing", t.ID, func(root *os.Root) error { return s.put(root, t) })
}

// maxEnded is how many servers may end while a turn works. A turn that ends its server each time, such as by its memory, is
// given up.
const maxEnded = 5

// Adopt makes this store serve an unfinished task whose server is [Gone] and that another can continue, and returns it as
// written, with one life more. Of several servers that try, one succeeds; for the others, and for a finished task, the
// error wraps [ErrNotServed].
// GiveUp gives the task up for its server from before: the owner is [Gone] again.
func (s *Store) Adopt(id string) (t Task, giveUp func() error, err error) {
	var before Server
	err = s.change("taking over", id, func(root *os.Root) error {
		err := claim.Alone(filepath.Join(s.dir, guardFile), func() error {
			found, owner, err := s.load(root, id)
			switch {
			case err != nil:
				return err
			case owner != Gone, found.Resume == nil, found.Resume.Ended >= maxEnded:
				return ErrNotServed
			}
			before = found.Server
			if found.Resume.Life++; found.Status != modern.TaskStatusInputRequired {
				found.Resume.Ended++
			}
			t = s.own(found)
			return s.put(root, t)
		})
		if errors.Is(err, safefile.ErrLocked) {
			err = ErrNotServed
		}
		return err
	})
	return t, func() error {
		return s.change("returning", id, func(root *os.Root) error {
			t.Server = before
			return s.put(root, t)
		})
	}, err
}

// Remove removes a task that this store serves, which no client knows.
func (s *Store) Remove(id string) error {
	return s.change("removing", id, func(root *os.Root) error { return s.remove(root, id) })
}

// change calls write with the folder, to change a task. Doing is for the error.
// [Store.Close] waits for write: a file must not be written after the lock was released,
// because another process may already have reported the task as lost.
func (s *Store) change(doing, id string, write func(root *os.Root) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s task %.200q: %w", doing, id, err)
		}
	}()
	s.changes.RLock()
	defer s.changes.RUnlock()
	if s.closed {
		return fmt.Errorf("%w: %w", ErrNotServed, os.ErrClosed)
	}
	root, err := s.join()
	if err != nil {
		return err
	}
	defer root.Close()
	return write(root)
}

// join makes and opens the folder, and locks this server's file. It checks each time that
// the file still exists: without it other processes would conclude that the server is gone.
func (s *Store) join() (*os.Root, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	root, err := s.open()
	if err != nil || s.lock != nil && s.lock.IsIn(root) {
		return root, err
	}
	if s.lock != nil {
		_ = s.lock.Close()
		_ = root.Remove(s.lock.Name()) // a file that replaced it, if any
	}
	if s.lock, err = claim.New(root, lockPrefix+s.server.Instance, ""); err != nil {
		return nil, errors.Join(fmt.Errorf("locking the folder of tasks: %w", err), root.Close())
	}
	return root, nil
}

// Close stops serving all tasks. The owner of unfinished ones is [Gone] from then on. Get,
// Gone and Sweep continue to work.
func (s *Store) Close() error {
	s.changes.Lock()
	defer s.changes.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.lock == nil {
		return nil
	}
	_ = os.Remove(filepath.Join(s.dir, s.lock.Name())) // else the next sweep does
	err := s.lock.Close()
	s.lock = nil
	return err
}

// own returns a task as this store writes it now.
func (s *Store) own(t Task) Task {
	t.Server = s.server
	t.Message = strings.ToValidUTF8(t.Message, "\uFFFD") // it may quote a command
	t.Updated = time.Now().UTC().Round(0)                // as it is read from the file
	return t
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
