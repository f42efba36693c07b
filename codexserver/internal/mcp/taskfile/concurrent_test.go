package taskfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/go-json-experiment/json/jsontext"
)

// TestConcurrent creates many tasks at once, and changes each of them many times at once.
// Exactly one change finishes the task.
func TestConcurrent(t *testing.T) {
	home := t.TempDir()
	s, other := newStore(t, home), newStore(t, home)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			task := create(t, s)
			var mu sync.Mutex
			var finished []taskfile.Task
			var changes sync.WaitGroup
			for n := range 6 {
				changes.Go(func() {
					task := task
					task.Message = fmt.Sprint(n)
					if n%2 == 0 {
						task.Status, task.Result, task.Resume = taskfile.Completed, jsontext.Value(`{}`), nil
					}
					task, err := s.Update(task)
					if err != nil && !errors.Is(err, taskfile.ErrNotServed) {
						t.Error(err)
					}
					if err == nil && task.Status.Finished() {
						mu.Lock()
						finished = append(finished, task)
						mu.Unlock()
					}
					if _, o, err := other.Get(task.ID); err != nil || o != taskfile.Other && o != taskfile.NoOwner {
						t.Errorf("%v, %v", o, err)
					}
				})
			}
			changes.Wait()
			if len(finished) != 1 {
				t.Errorf("it finished %d times", len(finished))
				return
			}
			found(t, other, finished[0], taskfile.NoOwner)
		})
	}
	all.Wait()
}

// TestFinishThenClose checks that a task does not count as lost if its server finishes it and
// closes at once.
func TestFinishThenClose(t *testing.T) {
	home := t.TempDir()
	reader := newStore(t, home)
	for range 25 {
		s := newStore(t, home)
		task := create(t, s)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				_, o, err := reader.Get(task.ID)
				if err != nil || o == taskfile.Gone {
					t.Errorf("%v, %v", o, err)
				}
				if o != taskfile.Other {
					return
				}
			}
		}()
		complete(t, s, task)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		<-done
	}
}

// TestCloseWaits checks that a task does not change after Close.
func TestCloseWaits(t *testing.T) {
	home := t.TempDir()
	reader := newStore(t, home)
	for range 50 {
		s := newStore(t, home)
		task := create(t, s)
		var changes sync.WaitGroup
		for range 4 {
			changes.Go(func() {
				for err := error(nil); err == nil; {
					_, err = s.Update(task)
				}
			})
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		want, _, err := reader.Get(task.ID)
		if err != nil {
			t.Fatal(err)
		}
		changes.Wait()
		found(t, reader, want, taskfile.Gone)
	}
}

// TestReadersAgree checks that concurrent readers of a lost task do not mistake each other for
// its server.
func TestReadersAgree(t *testing.T) {
	home := t.TempDir()
	lost := newStore(t, home)
	task := create(t, lost)
	// A killed process leaves its lock file.
	lock := filepath.Join(folder(home), "server-"+task.Server.Instance)
	if err := errors.Join(lost.Close(), os.WriteFile(lock, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		s := newStore(t, home)
		all.Go(func() {
			for range 100 {
				if _, o, err := s.Get(task.ID); err != nil || o != taskfile.Gone {
					t.Errorf("%v, %v", o, err)
					return
				}
			}
		})
	}
	all.Wait()
}
