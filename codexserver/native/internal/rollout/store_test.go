package rollout_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// stored returns a mirror of a home, its store, and a function that fails the test unless the
// store has what a file has.
func stored(t *testing.T, home string) (*worker.Mirror, *workertest.Dir, func(path string)) {
	t.Helper()
	disk := t.TempDir()
	m, d := workertest.Mirror(t, home, disk, 1)
	return m, d, func(path string) {
		t.Helper()
		rel, err := filepath.Rel(home, path)
		if err != nil {
			t.Fatal(err)
		}
		here, err := os.ReadFile(path)
		there, failed := os.ReadFile(filepath.Join(disk, rel))
		if err != nil || failed != nil || string(here) != string(there) {
			t.Errorf("%v, %v; the file has\n%s\nthe store has\n%s", err, failed, here, there)
		}
	}
}

// Events do not wait for the store; Durable does, and Sync. After a failure every
// write fails until the store has all lines, although the file has them.
func TestStore(t *testing.T) {
	home := t.TempDir()
	m, d, same := stored(t, home)
	meta := protocol.SessionMeta{ID: "0199a213-81c0-7800-8aa1-bbab2a035a53"}
	path := rollout.Path(home, meta.ID, time.Now())
	w, err := rollout.Create(path, meta, m)
	if err != nil {
		t.Fatal(err)
	}
	event := func() error { return w.Event(protocol.AgentMessage{Message: "hello"}) }
	steps := map[string]func() error{
		"durable": w.Durable, "sync": w.Sync, "check": w.Check,
	}
	for name, step := range steps {
		if err := errors.Join(event(), step()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		same(path)
		d.Fail = func(string) (error, bool) { return worker.ErrFull, false }
		if event() != nil {
			t.Errorf("before %s: an event waits for the store", name)
		}
		for range 2 {
			if err := step(); !errors.Is(err, worker.ErrFull) {
				t.Errorf("%s: %v", name, err)
			}
			if err := event(); !errors.Is(err, worker.ErrFull) {
				t.Errorf("after %s: %v", name, err)
			}
		}
		if d.Fail = nil; event() != nil {
			t.Errorf("after %s: the store is not full any more", name)
		}
		same(path)
	}
	if err := errors.Join(event(), w.Close()); err != nil {
		t.Error(err)
	}
	same(path)
	w = rollout.At(path, m)
	if err := w.Take(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := w.Sync(); !errors.Is(err, rollout.ErrGone) {
		t.Error(err)
	}
}

// TestStoreEnded ends the connection to the store, as when the node dies. What the process does
// while it ends is not in the file: the next server would take it for what happened.
func TestStoreEnded(t *testing.T) {
	home := t.TempDir()
	m, d, same := stored(t, home)
	d.End = make(chan struct{})
	meta := protocol.SessionMeta{ID: "0199a213-81c0-7800-8aa1-bbab2a035a53"}
	path := rollout.Path(home, meta.ID, time.Now())
	w, err := rollout.Create(path, meta, m)
	if err == nil {
		err = errors.Join(w.Event(protocol.AgentMessage{Message: "hello"}), w.Durable())
	}
	if err != nil {
		t.Fatal(err)
	}
	close(d.End)
	for i, write := range []func() error{
		w.Durable, // with nothing to write
		func() error { return w.Event(protocol.AgentMessage{Message: "aborted"}) },
		w.Durable,
	} {
		if err := write(); !errors.Is(err, worker.ErrUnavailable) {
			t.Errorf("write %d: %v", i, err)
		}
		same(path)
	}
	if err := w.Close(); !errors.Is(err, worker.ErrUnavailable) {
		t.Errorf("close: %v", err)
	}
	same(path)
}
