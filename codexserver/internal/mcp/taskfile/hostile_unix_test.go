//go:build unix

package taskfile_test

import (
	"errors"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

func TestNamedPipe(t *testing.T) {
	home := t.TempDir()
	s := newStore(t, home)
	task := create(t, s)
	must.OK(t, os.Remove(path(home, task.ID)), syscall.Mkfifo(path(home, task.ID), 0o600))
	var kind *safefile.KindError
	if _, _, err := s.Get(task.ID); !errors.As(err, &kind) {
		t.Errorf("Get: %v", err)
	}
	if _, err := s.Update(task); !errors.As(err, &kind) {
		t.Errorf("Update: %v", err)
	}
}

// TestLockIsNamedPipe checks that a named pipe in place of a lock does not block, belongs to
// no server, and is replaced at the server's next change.
func TestLockIsNamedPipe(t *testing.T) {
	home := t.TempDir()
	s := newStore(t, home)
	task := create(t, s)
	lock := filepath.Join(folder(home), "server-"+task.Server.Instance)
	must.OK(t, os.Remove(lock), syscall.Mkfifo(lock, 0o600))
	found(t, newStore(t, home), task, taskfile.Gone)
	found(t, newStore(t, home), update(t, s, task), taskfile.Other)
}

// TestForeignModes checks that files that others can write are refused.
func TestForeignModes(t *testing.T) {
	home := t.TempDir()
	s := newStore(t, home)
	task := create(t, s)
	for _, name := range []string{path(home, task.ID), folder(home)} {
		info, err := os.Stat(name)
		must.OK(t, err)
		for _, open := range []os.FileMode{0o020, 0o002} {
			must.OK(t, os.Chmod(name, info.Mode()|open))
			foreign := name + " belongs to another user"
			if _, _, err := s.Get(task.ID); err == nil || !strings.Contains(err.Error(), foreign) {
				t.Errorf("Get: %v", err)
			}
			if _, err := s.Update(task); err == nil || !strings.Contains(err.Error(), foreign) {
				t.Errorf("Update: %v", err)
			}
		}
		must.OK(t, os.Chmod(name, info.Mode()))
	}
	found(t, s, task, taskfile.Self)
}

// TestFullDisk runs itself with a limit for the size of files. A write fails in the middle, as on a full disk.
func TestFullDisk(t *testing.T) {
	const child = "TASKFILE_TEST_NO_ROOM"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	var was syscall.Rlimit
	must.OK(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	room := func(limit syscall.Rlimit) {
		t.Helper()
		must.OK(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	}
	home := t.TempDir()
	s, other := newStore(t, home), newStore(t, home)
	task := create(t, s)
	before := names(t, home)
	id := newID(t)
	changed := task
	changed.Status, changed.Result, changed.Resume = modern.TaskStatusCompleted, []byte(`{}`), nil
	for size := range uint64(100) {
		room(syscall.Rlimit{Cur: size, Max: was.Max})
		_, failed := s.Create(taskfile.Task{ID: id, Status: modern.TaskStatusWorking})
		_, kept := s.Update(changed)
		room(was)
		if failed == nil || kept == nil {
			t.Fatalf("there was room: %v, %v", failed, kept)
		}
	}
	if after := names(t, home); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	unknown(t, other, id)
	found(t, other, task, taskfile.Other)
	found(t, other, update(t, s, changed), taskfile.NoOwner)
	if _, err := s.Create(taskfile.Task{ID: id, Status: modern.TaskStatusWorking}); err != nil {
		t.Errorf("with room again: %v", err)
	}
}
