//go:build unix

package taskfile_test

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
)

// TestFullDisk runs itself with a limit for the size of files. A write fails in the middle, as
// on a full disk.
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
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	room := func(limit syscall.Rlimit) {
		t.Helper()
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
	}
	home := t.TempDir()
	s, other := newStore(t, home), newStore(t, home)
	task := create(t, s)
	before := names(t, home)
	id := newID(t)
	changed := task
	changed.Status, changed.Result, changed.Resume = taskfile.Completed, []byte(`{}`), nil
	for size := range uint64(100) {
		room(syscall.Rlimit{Cur: size, Max: was.Max})
		_, failed := s.Create(taskfile.Task{ID: id, Status: taskfile.Working})
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
	if _, err := s.Create(taskfile.Task{ID: id, Status: taskfile.Working}); err != nil {
		t.Errorf("with room again: %v", err)
	}
}
