package taskfile_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/go-json-experiment/json/jsontext"
)

// unserved makes a task whose server has ended.
func unserved(t *testing.T, home string) taskfile.Task {
	t.Helper()
	id, err := taskfile.NewID("thread")
	if err != nil {
		t.Fatal(err)
	}
	dead := taskfile.New(home, nil)
	task, err := dead.Create(taskfile.Task{ID: id, Tool: "codex", Status: taskfile.Working, Resume: jsontext.Value(`{"turn":{}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	return task
}

// asIs changes nothing of a task that is taken over.
func asIs(*taskfile.Task) error { return nil }

// TestAdopt lets many stores take over one task. One does; the others see that it serves the task.
func TestAdopt(t *testing.T) {
	home := t.TempDir()
	for range 20 {
		task := unserved(t, home)
		var won atomic.Int32
		var all sync.WaitGroup
		stores := make([]*taskfile.Store, 8)
		for i := range stores {
			stores[i] = taskfile.New(home, nil)
			all.Go(func() {
				got, _, err := stores[i].Adopt(task.ID, asIs)
				switch {
				case err == nil && string(got.Resume) == string(task.Resume):
					won.Add(1)
				case !errors.Is(err, taskfile.ErrBusy):
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
		all.Wait()
		if n := won.Load(); n != 1 {
			t.Fatalf("%d stores have the task", n)
		}
		owners := map[taskfile.Owner]int{}
		for _, s := range stores {
			_, owner, err := s.Get(task.ID)
			if err != nil {
				t.Error(err)
			}
			owners[owner]++
		}
		if owners[taskfile.Self] != 1 || owners[taskfile.Other] != len(stores)-1 {
			t.Errorf("owners: %v", owners)
		}
		for _, s := range stores {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestAdoptRefused takes over what cannot be.
func TestAdoptRefused(t *testing.T) {
	home := t.TempDir()
	s := taskfile.New(home, nil)
	defer s.Close()
	if _, _, err := s.Adopt("no id", asIs); !errors.Is(err, taskfile.ErrUnknown) {
		t.Errorf("no id: %v", err)
	}
	task := unserved(t, home)
	broken := errors.New("broken")
	if _, _, err := s.Adopt(task.ID, func(*taskfile.Task) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a change that fails: %v", err)
	}
	got, before, err := s.Adopt(task.ID, func(f *taskfile.Task) error {
		f.Resume = jsontext.Value(`{"turn":{"n":2}}`)
		return nil
	})
	if err != nil || before != task.Server || string(got.Resume) != `{"turn":{"n":2}}` {
		t.Fatalf("%+v, %+v, %v", got, before, err)
	}
	if _, _, err := s.Adopt(task.ID, asIs); !errors.Is(err, taskfile.ErrBusy) {
		t.Errorf("again: %v", err)
	}
	if got, err = s.Update(got); err != nil {
		t.Errorf("after the refusal: %v", err)
	}
	if err := s.Return(got, before); err != nil {
		t.Fatal(err)
	}
	if _, owner, err := s.Get(task.ID); err != nil || owner != taskfile.Gone {
		t.Errorf("after Return: %v, %v", owner, err)
	}
	if _, err := s.Update(got); !errors.Is(err, taskfile.ErrNotServed) {
		t.Errorf("Update after Return: %v", err)
	}
	if _, _, err = s.Adopt(task.ID, asIs); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(task.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Get(task.ID); !errors.Is(err, taskfile.ErrUnknown) {
		t.Errorf("after Remove: %v", err)
	}
	if err := s.Remove(task.ID); !errors.Is(err, taskfile.ErrNotServed) {
		t.Errorf("Remove again: %v", err)
	}
	done := unserved(t, home)
	if got, _, err = s.Adopt(done.ID, asIs); err != nil {
		t.Fatal(err)
	}
	got.Status, got.Result, got.Resume = taskfile.Completed, jsontext.Value(`{}`), nil
	if _, err := s.Update(got); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Adopt(done.ID, asIs); !errors.Is(err, taskfile.ErrNotServed) {
		t.Errorf("a finished task: %v", err)
	}
}
