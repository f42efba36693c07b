package taskfile_test

import (
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) { os.Exit(memdir.Run(m)) }

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
	return must.Get(taskfile.NewID(thread))(t)
}

func create(t testing.TB, s *taskfile.Store) taskfile.Task {
	t.Helper()
	return must.Get(s.Create(taskfile.Task{ID: newID(t), Tool: "codex", Status: modern.TaskStatusWorking, Resume: &taskfile.Resume{Turn: turn.Resume{Key: "k"}}}))(t)
}

func update(t testing.TB, s *taskfile.Store, task taskfile.Task) taskfile.Task {
	t.Helper()
	return must.Get(s.Update(task))(t)
}

func complete(t testing.TB, s *taskfile.Store, task taskfile.Task) taskfile.Task {
	t.Helper()
	task.Status, task.Result, task.Resume = modern.TaskStatusCompleted, jsontext.Value(`{"content":[]}`), nil
	return update(t, s, task)
}

// found fails the test unless the store has this task, with this owner.
func found(t testing.TB, s *taskfile.Store, want taskfile.Task, owner taskfile.Owner) {
	t.Helper()
	got, o, err := s.Get(want.ID)
	must.OK(t, err)
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
	if !strings.HasPrefix(task.ID, thread+".") || task.Server.PID != os.Getpid() {
		t.Errorf("%+v", task)
	}
	found(t, one, task, taskfile.Self)
	found(t, two, task, taskfile.Other)
	task.Status, task.Message = modern.TaskStatusInputRequired, "waiting for approval of \xff"
	task = update(t, one, task)
	found(t, two, task, taskfile.Other)
	if task.Message != "waiting for approval of \uFFFD" {
		t.Errorf("the message is %q", task.Message)
	}
	named := task
	named.Resume.Client = "a\xff"
	update(t, one, named)
	if got, _, err := two.Get(task.ID); err != nil || got.Resume.Client != "a\uFFFD" {
		t.Errorf("a client with a name that is not UTF-8: %+v, %v", got.Resume, err)
	}
	task = complete(t, one, task)
	found(t, one, task, taskfile.NoOwner)
	found(t, two, task, taskfile.NoOwner)
}

// TestClose checks that the tasks of a closed store count as lost.
func TestClose(t *testing.T) {
	home := t.TempDir()
	one, two := newStore(t, home), newStore(t, home)
	task, finished := create(t, one), complete(t, one, create(t, one))
	must.OK(t, one.Close())
	for _, s := range []*taskfile.Store{one, two} {
		found(t, s, task, taskfile.Gone)
		found(t, s, finished, taskfile.NoOwner)
	}
	if _, err := one.Update(task); !errors.Is(err, taskfile.ErrNotServed) {
		t.Errorf("Update: %v", err)
	}
	if _, err := one.Create(taskfile.Task{ID: newID(t), Status: modern.TaskStatusWorking}); !errors.Is(err, os.ErrClosed) {
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
	must.OK(t, s.Sweep(time.Now()), taskfile.New(home, nil).Close())
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
	must.OK(t, err)
}

// TestRemovedFolder checks that removing the folder loses only finished tasks. The others are
// written again, and their server still counts as alive.
func TestRemovedFolder(t *testing.T) {
	home := t.TempDir()
	one, two := newStore(t, home), newStore(t, home)
	task, finished := create(t, one), complete(t, one, create(t, one))
	must.OK(t, os.RemoveAll(filepath.Join(home, "codex-mcp")))
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
	must.OK(t, three.Close())
	list, err := one.Gone()
	if d := cmp.Diff([]taskfile.Task{last, first}, list); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	must.OK(t, os.WriteFile(path(home, last.ID), []byte("{}"), 0o600))
	list, err = one.Gone()
	if d := cmp.Diff([]taskfile.Task{first}, list); d != "" || err == nil || !strings.Contains(err.Error(), last.ID) {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

// unserved makes a task whose server has ended.
func unserved(t *testing.T, home string) taskfile.Task {
	t.Helper()
	dead := newStore(t, home)
	task := create(t, dead)
	must.OK(t, dead.Close())
	return task
}

// TestAdopt lets many stores take over one task. One does; the others see that it serves the task.
func TestAdopt(t *testing.T) {
	home := t.TempDir()
	for range 6 {
		task := unserved(t, home)
		var won atomic.Int32
		var all sync.WaitGroup
		stores := make([]*taskfile.Store, 8)
		for i := range stores {
			stores[i] = newStore(t, home)
			all.Go(func() {
				got, _, err := stores[i].Adopt(task.ID)
				switch {
				case err == nil && got.Resume.Life == 1 && got.Resume.Ended == 1:
					won.Add(1)
				case !errors.Is(err, taskfile.ErrNotServed):
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
			must.OK(t, err)
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
		if _, _, err := s.Adopt(id); !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("no id", "no id", taskfile.ErrUnknown)
	task := unserved(t, home)
	got, giveUp, err := s.Adopt(task.ID)
	if err != nil || got.Resume.Life != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	refused("again", task.ID, taskfile.ErrNotServed)
	got = update(t, s, got)
	must.OK(t, giveUp())
	left, owner, err := s.Get(task.ID)
	if err != nil || owner != taskfile.Gone || left.Server != task.Server {
		t.Errorf("given up: %+v, %v, %v", left, owner, err)
	}
	waiting, _, err := s.Adopt(task.ID)
	if err != nil || waiting.Resume.Life != 2 || waiting.Resume.Ended != 2 || waiting.Resume.Turn.Key != "k" {
		t.Fatalf("%+v, %v", waiting.Resume, err)
	}
	must.OK(t, s.Remove(task.ID))
	unknown(t, s, task.ID)
	done := unserved(t, home)
	if got, _, err = s.Adopt(done.ID); err != nil {
		t.Fatal(err)
	}
	complete(t, s, got)
	refused("a finished task", done.ID, taskfile.ErrNotServed)
	ours := newStore(t, home)
	left = create(t, ours)
	left.Resume = nil
	update(t, ours, left)
	must.OK(t, ours.Close())
	refused("a task that none continues", left.ID, taskfile.ErrNotServed)
}

// TestFinishThenClose checks that a task does not count as lost if its server finishes it and closes at once.
func TestFinishThenClose(t *testing.T) {
	home := t.TempDir()
	reader := newStore(t, home)
	for range 10 {
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
		must.OK(t, s.Close())
		<-done
	}
}

// TestCloseWaits checks that a task does not change after Close.
func TestCloseWaits(t *testing.T) {
	home := t.TempDir()
	reader := newStore(t, home)
	for range 15 {
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
		must.OK(t, s.Close())
		want, _, err := reader.Get(task.ID)
		must.OK(t, err)
		changes.Wait()
		found(t, reader, want, taskfile.Gone)
	}
}

// TestReadersAgree checks that concurrent readers of a lost task do not mistake each other for its server.
func TestReadersAgree(t *testing.T) {
	home := t.TempDir()
	lost := newStore(t, home)
	task := create(t, lost)
	// A killed process leaves its lock file.
	lock := filepath.Join(folder(home), "server-"+task.Server.Instance)
	must.OK(t, os.Remove(lock), lost.Close(), os.WriteFile(lock, nil, 0o600)) // somebody may have removed it
	var all sync.WaitGroup
	for range 8 {
		s := newStore(t, home)
		all.Go(func() {
			for range 30 {
				if _, o, err := s.Get(task.ID); err != nil || o != taskfile.Gone {
					t.Errorf("%v, %v", o, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// sweep sweeps as in some time.
func sweep(t *testing.T, s *taskfile.Store, ahead time.Duration) {
	t.Helper()
	must.OK(t, s.Sweep(time.Now().Add(ahead)))
}

func TestSweep(t *testing.T) {
	home := t.TempDir()
	s, other, ended := newStore(t, home), newStore(t, home), newStore(t, home)
	finished, working, others, gone := complete(t, s, create(t, s)), create(t, s), create(t, other), create(t, ended)
	must.OK(t, ended.Close())
	sweep(t, s, 0)
	sweep(t, s, taskfile.Keep-time.Minute)
	found(t, s, finished, taskfile.NoOwner)
	found(t, s, gone, taskfile.Gone)

	sweep(t, s, taskfile.Keep+time.Minute)
	unknown(t, s, finished.ID)
	sweep(t, s, taskfile.KeepGone-time.Minute)
	found(t, s, gone, taskfile.Gone)
	sweep(t, s, taskfile.KeepGone+time.Minute)
	unknown(t, s, gone.ID)
	found(t, s, working, taskfile.Self) // tasks that are served are never removed
	found(t, s, others, taskfile.Other)
}

// TestSweepOtherFiles checks that a sweep keeps foreign files, but removes the remains of killed servers.
func TestSweepOtherFiles(t *testing.T) {
	home := t.TempDir()
	s := newStore(t, home)
	task := create(t, s)
	lock, broken := "server-"+secret, "task-x."+secret+".json"
	all := []string{lock, ".tmp-123", broken, "note", "server-", "server-x", "task-x.json", "task-" + task.ID + ".json.bak"}
	for _, name := range all {
		must.OK(t, os.WriteFile(filepath.Join(folder(home), name), []byte("{"), 0o600))
	}
	left := func(want ...string) {
		t.Helper()
		for _, name := range all {
			_, err := os.Stat(filepath.Join(folder(home), name))
			if want := strings.Contains(strings.Join(want, "|")+"|", name+"|"); want != (err == nil) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	sweep(t, s, 0)
	left(all[1:]...)
	err := s.Sweep(time.Now().Add(100 * taskfile.Keep))
	left(all[2:]...)
	if text := fmt.Sprint(err); strings.Count(text, "sweeping") != 1 || !strings.Contains(text, broken) {
		t.Errorf("the error is %s", text)
	}
	found(t, s, task, taskfile.Self)
}

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
	must.OK(t, err)
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
	must.OK(t, s.Sweep(later))
	unknown(t, s, task.ID)
	unknown(t, kept, task.ID)
	gone := create(t, s)
	must.OK(t, s.Remove(gone.ID))
	unknown(t, kept, gone.ID)
	if left, err := os.ReadDir(filepath.Join(disk, "codex-mcp", "tasks")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
