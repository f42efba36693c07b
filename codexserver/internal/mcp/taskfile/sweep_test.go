package taskfile_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
)

// clock is ahead of the file system's by a time that the test sets.
type clock struct{ ahead time.Duration }

func (c *clock) now() time.Time { return time.Now().Add(c.ahead) }

func sweep(t *testing.T, s *taskfile.Store) {
	t.Helper()
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// age sets the time of a task's file to the clock's.
func age(t *testing.T, c *clock, file string) {
	t.Helper()
	if err := os.Chtimes(file, time.Time{}, c.now()); err != nil {
		t.Fatal(err)
	}
}

func TestSweep(t *testing.T) {
	home := t.TempDir()
	c, log := &clock{}, &bytes.Buffer{}
	s := taskfile.New(home, &taskfile.Options{Now: c.now, Logger: slog.New(slog.NewTextHandler(log, nil))})
	defer s.Close()
	other, ended := newStore(t, home), newStore(t, home)
	finished, working, others, gone := complete(t, s, create(t, s)), create(t, s), create(t, other), create(t, ended)
	if err := ended.Close(); err != nil {
		t.Fatal(err)
	}
	sweep(t, s)
	c.ahead = taskfile.Keep - time.Minute
	sweep(t, s)
	found(t, s, finished, taskfile.NoOwner)
	found(t, s, gone, taskfile.Gone)

	// Tasks that are served are never removed. A lost task is kept for the same time again.
	c.ahead = 10 * taskfile.Keep
	sweep(t, s)
	unknown(t, s, finished.ID)
	found(t, s, working, taskfile.Self)
	found(t, s, others, taskfile.Other)
	lost, o, err := s.Get(gone.ID)
	if left := lost.Expires.Sub(c.now()); err != nil || o != taskfile.Gone || left > taskfile.Keep || left < taskfile.Keep-time.Hour {
		t.Errorf("%+v, %v, %v", lost, o, err)
	}
	age(t, c, path(home, gone.ID))
	c.ahead += taskfile.Keep - time.Hour
	sweep(t, s)
	found(t, s, lost, taskfile.Gone)
	c.ahead += 2 * time.Hour
	sweep(t, s)
	unknown(t, s, gone.ID)
	found(t, s, working, taskfile.Self)
	if log.Len() > 0 {
		t.Errorf("logged: %s", log)
	}
}

// TestSweepOtherFiles checks that a sweep keeps foreign files, but removes the remains of
// killed servers.
func TestSweepOtherFiles(t *testing.T) {
	home := t.TempDir()
	c, log := &clock{}, &bytes.Buffer{}
	s := taskfile.New(home, &taskfile.Options{Now: c.now, Logger: slog.New(slog.NewTextHandler(log, nil))})
	defer s.Close()
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
	sweep(t, s)
	left(all...)
	c.ahead = 2 * time.Hour
	sweep(t, s)
	left(all[1:]...)
	c.ahead = 100 * taskfile.Keep
	sweep(t, s)
	left(all[2:]...)
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, broken) {
		t.Errorf("logged: %s", text)
	}
	found(t, s, task, taskfile.Self)
}

func TestSweepEnds(t *testing.T) {
	s := newStore(t, t.TempDir())
	create(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Sweep(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
