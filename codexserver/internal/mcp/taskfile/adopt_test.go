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
				got, err := stores[i].Adopt(task.ID)
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
	if _, err := s.Adopt("no id"); !errors.Is(err, taskfile.ErrUnknown) {
		t.Errorf("no id: %v", err)
	}
	task := unserved(t, home)
	got, err := s.Adopt(task.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Adopt(task.ID); !errors.Is(err, taskfile.ErrBusy) {
		t.Errorf("again: %v", err)
	}
	if got, err = s.Update(got); err != nil {
		t.Errorf("after the refusal: %v", err)
	}
	if err := s.Return(got, task.Server); err != nil {
		t.Fatal(err)
	}
	if _, owner, err := s.Get(task.ID); err != nil || owner != taskfile.Gone {
		t.Errorf("after Return: %v, %v", owner, err)
	}
	if _, err := s.Update(got); !errors.Is(err, taskfile.ErrNotServed) {
		t.Errorf("Update after Return: %v", err)
	}
	if _, err = s.Adopt(task.ID); err != nil {
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
	if got, err = s.Adopt(done.ID); err != nil {
		t.Fatal(err)
	}
	got.Status, got.Result, got.Resume = taskfile.Completed, jsontext.Value(`{}`), nil
	if _, err := s.Update(got); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Adopt(done.ID); !errors.Is(err, taskfile.ErrNotServed) {
		t.Errorf("a finished task: %v", err)
	}
}
