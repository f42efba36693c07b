package taskfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/store"
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

// Options are the options of a store.
type Options struct {
	// Logger logs files that the store does not understand. Default: none.
	Logger *slog.Logger
	// Now is the clock. Default: [time.Now].
	Now func() time.Time
	// Mirror also keeps the tasks. Each change is there before it is in the file. Default:
	// they are only files.
	Mirror *store.Mirror
}

// Store keeps the tasks of a home. It is safe for concurrent use. It keeps nothing about
// finished tasks in memory.
type Store struct {
	dir    string
	mirror *store.Mirror
	logger *slog.Logger
	now    func() time.Time
	server Server
	most   int // finished tasks that a sweep leaves

	mu       sync.Mutex
	idle     *sync.Cond // of mu: a change has ended, or the store is closed
	closed   bool
	lock     *claim.Owner    // nil before the first task
	served   map[string]bool // the unfinished tasks of this store
	changing map[string]bool // the tasks that are being written
}

// New returns the store of a home. It does not read or write files.
func New(home string, o *Options) *Store {
	if o == nil {
		o = &Options{}
	}
	s := &Store{dir: filepath.Join(home, "codex-mcp", "tasks"), mirror: o.Mirror, logger: o.Logger, now: o.Now, most: maxFinished, served: map[string]bool{}, changing: map[string]bool{}}
	s.idle = sync.NewCond(&s.mu)
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	host, _ := os.Hostname() // only for display
	s.server = Server{Instance: rand.Text(), PID: os.Getpid(), Host: host, Started: s.time()}
	return s
}

// Create writes a new task, which this store serves from then on. It returns the task as
// written. When Create returns, the task survives a crash of the system. If it fails, no
// task was written.
func (s *Store) Create(t Task) (Task, error) {
	t.Created = s.time()
	t = s.stamp(t)
	err := s.change(t.ID, os.ErrClosed, func(root *os.Root, serves bool) (bool, error) {
		if serves {
			return true, fs.ErrExist
		}
		err := s.create(root, t)
		return err == nil && !t.Status.Finished(), err
	})
	if err != nil {
		return t, fmt.Errorf("creating task %.200q: %w", t.ID, err)
	}
	return t, nil
}

// change calls write for a task, after the changes of it that are under way. Write gets the folder and whether
// this store serves the task, and returns whether it does from then on. The error is closed if the store
// was closed. [Store.Close] waits for write: a file must not be written after the lock was released,
// because another process may already have reported the task as lost.
func (s *Store) change(id string, closed error, write func(root *os.Root, serves bool) (bool, error)) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.changing[id] && !s.closed {
		s.idle.Wait()
	}
	if s.closed {
		return closed
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

// Update replaces a task that this store serves. T is the task that [Store.Create]
// returned, with another status, message, result or error. Changes of one task happen in
// the order of the calls. When Update returns, the change survives a crash of the system.
//
// Update returns the task as written. After a status that finishes the task the error is an
// [ErrNotServed]. After any other error the file is unchanged, and the caller may call
// Update again.
func (s *Store) Update(t Task) (Task, error) {
	err := s.change(t.ID, ErrNotServed, func(root *os.Root, serves bool) (bool, error) {
		if !serves {
			return false, ErrNotServed
		}
		t = s.stamp(t)
		err := s.put(root, t)
		return err != nil || !t.Status.Finished(), err
	})
	if err != nil {
		return t, fmt.Errorf("changing task %.200q: %w", t.ID, err)
	}
	return t, nil
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
	return s.leave()
}

// time returns the time as it is read from a file.
func (s *Store) time() time.Time { return s.now().UTC().Round(0) }

func (s *Store) stamp(t Task) Task {
	t.Server = s.server
	t.Message = strings.ToValidUTF8(t.Message, "\uFFFD") // it may quote a command
	t.Updated = s.time()
	t.Expires = time.Time{}
	if t.Status.Finished() {
		t.Expires = t.Updated.Add(Keep)
	}
	return t
}

// create writes the file of a new task, which must not exist.
func (s *Store) create(root *os.Root, t Task) error {
	data, err := encode(t)
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, fileName(t.ID))
	if _, err := root.Lstat(fileName(t.ID)); err == nil {
		return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	if err = s.replace(root, t.ID, data); err != nil {
		_ = s.mirror.Delete(path) // the client does not get this task
		_ = root.Remove(fileName(t.ID))
	}
	return err
}

// remove removes a task, at last its file.
func (s *Store) remove(root *os.Root, id string) error {
	if err := s.mirror.Delete(filepath.Join(s.dir, fileName(id))); err != nil {
		return err
	}
	return root.Remove(fileName(id))
}

// put writes the file of a task.
func (s *Store) put(root *os.Root, t Task) error {
	data, err := encode(t)
	if err != nil {
		return err
	}
	return s.replace(root, t.ID, data)
}

// replace replaces the content of a task's file.
func (s *Store) replace(root *os.Root, id string, data []byte) error {
	path := filepath.Join(s.dir, fileName(id))
	if err := checkFile(root, id); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // otherwise a link would be followed
	}
	if err := s.mirror.Put(path, data); err != nil {
		return err
	}
	if err := safefile.Write(path, data, 0o600); err != nil {
		return err
	}
	return safefile.SyncFolder(root)
}
