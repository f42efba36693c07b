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
	dead := newStore(t, home)
	task := create(t, dead)
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
			stores[i] = newStore(t, home)
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
	}
}

// TestAdoptRefused takes over what cannot be.
func TestAdoptRefused(t *testing.T) {
	home := t.TempDir()
	s := newStore(t, home)
	refused := func(what, id string, want error) {
		t.Helper()
		if _, _, err := s.Adopt(id, asIs); !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("no id", "no id", taskfile.ErrUnknown)
	task := unserved(t, home)
	broken := errors.New("broken")
	if _, _, err := s.Adopt(task.ID, func(*taskfile.Task) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a change that fails: %v", err)
	}
	changed := jsontext.Value(`{"turn":{"n":2}}`)
	got, giveUp, err := s.Adopt(task.ID, func(f *taskfile.Task) error {
		f.Resume = changed
		return nil
	})
	if err != nil || string(got.Resume) != string(changed) {
		t.Fatalf("%+v, %v", got, err)
	}
	refused("again", task.ID, taskfile.ErrBusy)
	got = update(t, s, got)
	if err := giveUp(); err != nil {
		t.Fatal(err)
	}
	left, owner, err := s.Get(task.ID)
	if err != nil || owner != taskfile.Gone || left.Server != task.Server {
		t.Errorf("given up: %+v, %v, %v", left, owner, err)
	}
	if _, err := s.Update(got); !errors.Is(err, taskfile.ErrNotServed) {
		t.Errorf("Update of what was given up: %v", err)
	}
	if _, _, err = s.Adopt(task.ID, asIs); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(task.ID); err != nil {
		t.Fatal(err)
	}
	unknown(t, s, task.ID)
	if err := s.Remove(task.ID); !errors.Is(err, taskfile.ErrNotServed) {
		t.Errorf("Remove again: %v", err)
	}
	done := unserved(t, home)
	if got, _, err = s.Adopt(done.ID, asIs); err != nil {
		t.Fatal(err)
	}
	complete(t, s, got)
	refused("a finished task", done.ID, taskfile.ErrNotServed)
}
