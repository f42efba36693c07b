package taskfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

const thread = "0199a213-81c0-7800-8aa1-bbab2a035a53"

func newStore(t testing.TB, home string) *taskfile.Store {
	t.Helper()
	s := taskfile.New(home, nil)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func folder(home string) string { return filepath.Join(home, "codex-mcp", "tasks") }

func path(home, id string) string { return filepath.Join(folder(home), "task-"+id+".json") }

func newID(t testing.TB) string {
	t.Helper()
	id, err := taskfile.NewID(thread)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func create(t testing.TB, s *taskfile.Store) taskfile.Task {
	t.Helper()
	task, err := s.Create(taskfile.Task{ID: newID(t), Tool: "codex", Status: taskfile.Working, Resume: jsontext.Value(`{"turn":{}}`)})
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func update(t testing.TB, s *taskfile.Store, task taskfile.Task) taskfile.Task {
	t.Helper()
	task, err := s.Update(task)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func complete(t testing.TB, s *taskfile.Store, task taskfile.Task) taskfile.Task {
	t.Helper()
	task.Status, task.Result, task.Resume = taskfile.Completed, jsontext.Value(`{"content":[]}`), nil
	return update(t, s, task)
}

// found fails the test unless the store has this task, with this owner.
func found(t testing.TB, s *taskfile.Store, want taskfile.Task, owner taskfile.Owner) {
	t.Helper()
	got, o, err := s.Get(want.ID)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" || o != owner {
		t.Errorf("the owner is %v, want %v; (-want +got):\n%s", o, owner, d)
	}
}

func unknown(t testing.TB, s *taskfile.Store, id string) {
	t.Helper()
	if got, _, err := s.Get(id); !errors.Is(err, taskfile.ErrUnknown) {
		t.Errorf("%q: %+v, %v", id, got, err)
	}
}

// TestTask follows a task from beginning to end, as seen by its server and by another.
func TestTask(t *testing.T) {
	home := t.TempDir()
	one, two := newStore(t, home), newStore(t, home)
	task := create(t, one)
	if task.Thread() != thread || !task.Expires.IsZero() || task.Server.PID != os.Getpid() {
		t.Errorf("%+v", task)
	}
	found(t, one, task, taskfile.Self)
	found(t, two, task, taskfile.Other)
	task.Status, task.Message = taskfile.InputRequired, "waiting for approval of \xff"
	task = update(t, one, task)
	found(t, two, task, taskfile.Other)
	if task.Message != "waiting for approval of \uFFFD" {
		t.Errorf("the message is %q", task.Message)
	}
	if _, err := two.Update(task); !errors.Is(err, taskfile.ErrNotServed) {
		t.Errorf("another store: %v", err)
	}
	task = complete(t, one, task)
	found(t, one, task, taskfile.NoOwner)
	found(t, two, task, taskfile.NoOwner)
	if want := task.Updated.Add(24 * time.Hour); !task.Expires.Equal(want) {
		t.Errorf("it expires at %v, want %v", task.Expires, want)
	}
	if _, err := one.Update(task); !errors.Is(err, taskfile.ErrNotServed) {
		t.Errorf("a finished task: %v", err)
	}
	if _, err := one.Create(task); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the same id again: %v", err)
	}
	found(t, one, task, taskfile.NoOwner)
}

// TestClose checks that the tasks of a closed store count as lost.
func TestClose(t *testing.T) {
	home := t.TempDir()
	one, two := newStore(t, home), newStore(t, home)
	task, finished := create(t, one), complete(t, one, create(t, one))
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*taskfile.Store{one, two} {
		found(t, s, task, taskfile.Gone)
		found(t, s, finished, taskfile.NoOwner)
	}
	if _, err := one.Update(task); !errors.Is(err, taskfile.ErrNotServed) {
		t.Errorf("Update: %v", err)
	}
	if _, err := one.Create(taskfile.Task{ID: newID(t), Status: taskfile.Working}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Create: %v", err)
	}
}

// TestFolder checks that nothing is written before the first task, and that only the user
// has access to its folders and files.
func TestFolder(t *testing.T) {
	home := t.TempDir()
	s := newStore(t, home)
	unknown(t, s, newID(t))
	if list, err := s.Gone(); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	if err := errors.Join(s.Sweep(time.Now()), taskfile.New(home, nil).Close()); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(home); err != nil || len(files) != 0 {
		t.Errorf("%v, %v", files, err)
	}
	create(t, s)
	err := filepath.WalkDir(filepath.Join(home, "codex-mcp"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; err == nil && info.Mode().Perm() != want && runtime.GOOS != "windows" {
			t.Errorf("%s: %v, want %v", path, info.Mode(), want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRemovedFolder checks that removing the folder loses only finished tasks. The others are
// written again, and their server still counts as alive.
func TestRemovedFolder(t *testing.T) {
	home := t.TempDir()
	one, two := newStore(t, home), newStore(t, home)
	task, finished := create(t, one), complete(t, one, create(t, one))
	if err := os.RemoveAll(filepath.Join(home, "codex-mcp")); err != nil {
		t.Fatal(err)
	}
	unknown(t, two, task.ID)
	task.Message = "again"
	found(t, two, update(t, one, task), taskfile.Other)
	unknown(t, two, finished.ID)
}

func TestGone(t *testing.T) {
	home := t.TempDir()
	one, two, three := newStore(t, home), newStore(t, home), newStore(t, home)
	create(t, one)
	create(t, two)
	first, last := create(t, three), create(t, three)
	complete(t, three, create(t, three))
	if err := three.Close(); err != nil {
		t.Fatal(err)
	}
	list, err := one.Gone()
	if d := cmp.Diff([]taskfile.Task{last, first}, list); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if err := os.WriteFile(path(home, last.ID), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err = one.Gone()
	if d := cmp.Diff([]taskfile.Task{first}, list); d != "" || err == nil || !strings.Contains(err.Error(), last.ID) {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}
