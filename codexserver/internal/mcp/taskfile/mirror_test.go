package taskfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// mirrored returns a store of tasks that are also in the folder disk, which has the form of a home.
func mirrored(t *testing.T, home, disk string, epoch uint64) (*taskfile.Store, *workertest.Dir) {
	t.Helper()
	m, d := workertest.Mirror(t, home, disk, epoch)
	s := taskfile.New(home, m)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, d
}

// failing lets a store fail.
func failing(err error) func(string) (error, bool) {
	return func(string) (error, bool) { return err, false }
}

// A change is in the store before it is in the file, and in neither if the store fails. Another
// machine finds the task without its server.
func TestMirror(t *testing.T) {
	home, disk, away := t.TempDir(), t.TempDir(), t.TempDir()
	s, d := mirrored(t, home, disk, 1)
	kept := newStore(t, disk)
	task := create(t, s)
	found(t, kept, task, taskfile.Gone)
	id := newID(t)
	d.Fail = failing(worker.ErrUnavailable)
	if _, err := s.Create(taskfile.Task{ID: id, Tool: "codex", Status: modern.TaskStatusWorking}); !errors.Is(err, worker.ErrUnavailable) {
		t.Error(err)
	}
	unknown(t, s, id)
	unknown(t, kept, id)
	changed := task
	changed.Status, changed.Result, changed.Resume = modern.TaskStatusCompleted, []byte(`{}`), nil
	if _, err := s.Update(changed); !errors.Is(err, worker.ErrUnavailable) {
		t.Error(err)
	}
	found(t, s, task, taskfile.Self)
	if err := s.Remove(task.ID); !errors.Is(err, worker.ErrUnavailable) {
		t.Error(err)
	}
	found(t, s, task, taskfile.Self)
	d.Fail = nil
	task = create(t, s)
	found(t, kept, task, taskfile.Gone)

	next, _ := mirrored(t, away, disk, 2)
	found(t, next, task, taskfile.Gone)
	adopted, _, err := next.Adopt(task.ID)
	must(t, err)
	if _, err := s.Update(task); !errors.Is(err, worker.ErrFenced) {
		t.Error(err)
	}
	done := complete(t, next, adopted)
	found(t, kept, done, taskfile.NoOwner)
}

// What a sweep removes is removed from the store, too.
func TestMirrorSweeps(t *testing.T) {
	home, disk := t.TempDir(), t.TempDir()
	s, d := mirrored(t, home, disk, 1)
	kept := newStore(t, disk)
	task := complete(t, s, create(t, s))
	found(t, kept, task, taskfile.NoOwner)
	later := time.Now().Add(2 * taskfile.Keep)
	d.Fail = failing(worker.ErrFull)
	if err := s.Sweep(later); !errors.Is(err, worker.ErrFull) {
		t.Error(err)
	}
	found(t, s, task, taskfile.NoOwner)
	d.Fail = nil
	must(t, s.Sweep(later))
	unknown(t, s, task.ID)
	unknown(t, kept, task.ID)
	gone := create(t, s)
	must(t, s.Remove(gone.ID))
	unknown(t, kept, gone.ID)
	if left, err := os.ReadDir(filepath.Join(disk, "codex-mcp", "tasks")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
