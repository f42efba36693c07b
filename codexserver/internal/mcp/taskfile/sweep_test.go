package taskfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
)

// sweep sweeps as in some time.
func sweep(t *testing.T, s *taskfile.Store, ahead time.Duration) {
	t.Helper()
	if err := s.Sweep(time.Now().Add(ahead)); err != nil {
		t.Fatal(err)
	}
}

func TestSweep(t *testing.T) {
	home := t.TempDir()
	s, other, ended := newStore(t, home), newStore(t, home), newStore(t, home)
	finished, working, others, gone := complete(t, s, create(t, s)), create(t, s), create(t, other), create(t, ended)
	if err := ended.Close(); err != nil {
		t.Fatal(err)
	}
	sweep(t, s, 0)
	sweep(t, s, taskfile.Keep-time.Minute)
	found(t, s, finished, taskfile.NoOwner)
	found(t, s, gone, taskfile.Gone)

	// Tasks that are served are never removed. A lost task is kept for the same time again.
	ahead := 10 * taskfile.Keep
	sweep(t, s, ahead)
	unknown(t, s, finished.ID)
	found(t, s, working, taskfile.Self)
	found(t, s, others, taskfile.Other)
	lost, o, err := s.Get(gone.ID)
	if left := lost.Expires.Sub(time.Now().Add(ahead)); err != nil || o != taskfile.Gone || left > taskfile.Keep || left < taskfile.Keep-time.Hour {
		t.Errorf("%+v, %v, %v", lost, o, err)
	}
	sweep(t, s, ahead+taskfile.Keep-time.Hour)
	found(t, s, lost, taskfile.Gone)
	sweep(t, s, ahead+taskfile.Keep+time.Hour)
	unknown(t, s, gone.ID)
	found(t, s, working, taskfile.Self)
}

// TestSweepOtherFiles checks that a sweep keeps foreign files, but removes the remains of
// killed servers.
func TestSweepOtherFiles(t *testing.T) {
	home := t.TempDir()
	s := newStore(t, home)
	task := create(t, s)
	lock, broken := "server-"+secret, "task-x."+secret+".json"
	all := []string{lock, ".tmp-123", broken, "note", "server-", "server-x", "task-x.json", "task-" + task.ID + ".json.bak"}
	for _, name := range all {
		if err := os.WriteFile(filepath.Join(folder(home), name), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
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
	left(all...)
	sweep(t, s, 2*time.Hour)
	left(all[1:]...)
	err := s.Sweep(time.Now().Add(100 * taskfile.Keep))
	left(all[2:]...)
	if text := fmt.Sprint(err); strings.Count(text, "sweeping") != 1 || !strings.Contains(text, broken) {
		t.Errorf("the error is %s", text)
	}
	found(t, s, task, taskfile.Self)
}
