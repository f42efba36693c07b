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
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func load(t *testing.T, w *rollout.Writer) (texts []string) {
	t.Helper()
	r := must.Get(rollout.Load(w.Path()))(t)
	must.Equal(t, "lines cannot be read", 0, r.Skipped)
	for _, item := range r.Items {
		texts = append(texts, item.(protocol.MessageItem).Content[0].Text)
	}
	return texts
}

func appendLine(path string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("{}\n")
	return errors.Join(err, f.Close())
}

func replace(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(path+".new", data, 0o600), os.Rename(path+".new", path))
}

// TestClaim claims one rollout by writers of several paths that lead to it.
func TestClaim(t *testing.T) {
	testenv.NeedsLinks(t)
	first := create(t)
	link := filepath.Join(t.TempDir(), "link.jsonl")
	must.OK(t, os.Symlink(first.Path(), link))
	second, third := rollout.At(first.Path(), nil), rollout.At(link, nil)
	claim := func(w *rollout.Writer, want error) {
		t.Helper()
		if err := w.Claim(); !errors.Is(err, want) {
			t.Errorf("Claim: %v, want %v", err, want)
		}
	}
	claimed := func(want bool) {
		t.Helper()
		for _, path := range []string{first.Path(), link} {
			must.Equal(t, "claimed", want, errors.Is(rollout.Claimed(path), rollout.ErrClaimed))
		}
	}
	claimed(true) // by Create
	claim(second, rollout.ErrClaimed)
	claim(third, rollout.ErrClaimed)
	must.OK(t, first.Item(userMessage("one")))
	must.OK(t, first.Release(), first.Release())
	claimed(false)
	must.OK(t, first.Item(userMessage("two"))) // not in a turn
	claim(third, nil)
	claimed(true)
	claim(first, rollout.ErrClaimed)
	must.OK(t, third.Take(func() error { return nil }), third.Item(userMessage("three")), third.Close())
	claimed(false)
	claim(first, nil)
	if err := first.Check(); !errors.Is(err, rollout.ErrChanged) {
		t.Errorf("Check: %v", err)
	}
	must.OK(t, os.Remove(link), first.Release())
	claim(third, nil) // the next write says that nothing is there
	if err := third.Check(); err == nil {
		t.Error("a file that is not there was opened")
	}
}

func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(path string) error
		want error
	}{
		"nothing":  {func(string) error { return nil }, nil},
		"removed":  {os.Remove, rollout.ErrGone},
		"emptied":  {func(path string) error { return os.Truncate(path, 0) }, rollout.ErrGone},
		"cut":      {func(path string) error { return os.Truncate(path, 10) }, rollout.ErrGone},
		"appended": {appendLine, rollout.ErrChanged},
		"replaced": {replace, rollout.ErrChanged},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "removed" || name == "replaced" {
				testenv.NeedsUnix(t, testenv.OpenFiles)
			}
			w := create(t)
			must.OK(t, w.Item(userMessage("one")), tt.do(w.Path()))
			if err := w.Check(); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Fatalf("Check: %v, want %v", err, tt.want)
			}
			err := w.Item(userMessage("two"))
			if errors.Is(tt.want, rollout.ErrGone) != errors.Is(err, rollout.ErrGone) {
				t.Errorf("Item: %v", err)
			}
			if err := w.Check(); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("Check after a write: %v, want %v", err, tt.want)
			}
		})
	}
}

// TestClaimFollowsThePath moves the claimed file away, and another one to its place: lines go to that one.
func TestClaimFollowsThePath(t *testing.T) {
	testenv.NeedsUnix(t, testenv.OpenFiles)
	w := create(t)
	must.OK(t, w.Item(userMessage("one")), replace(w.Path()), w.Item(userMessage("two")))
	if texts := load(t, w); len(texts) != 2 {
		t.Errorf("the file has %q", texts)
	}
	must.OK(t, os.Remove(w.Path()))
	if err := w.Item(userMessage("three")); !errors.Is(err, rollout.ErrGone) {
		t.Errorf("Item: %v", err)
	}
}

// stored returns a mirror of a home, its store, and a function that fails the test unless the
// store has what a file has.
func stored(t *testing.T, home string) (*worker.Mirror, *workertest.Dir, func(path string)) {
	t.Helper()
	disk := t.TempDir()
	m, d := workertest.Mirror(t, home, disk, 1)
	return m, d, func(path string) {
		t.Helper()
		rel := must.Get(filepath.Rel(home, path))(t)
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
	w := must.Get(rollout.Create(path, meta, m))(t)
	event := func() error { return w.Event(protocol.AgentMessage{Message: "hello"}) }
	steps := map[string]func() error{"durable": w.Durable, "sync": w.Sync, "check": w.Check}
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
	must.OK(t, event(), w.Close())
	same(path)
	w = rollout.At(path, m)
	must.OK(t, w.Take(func() error { return nil }))
	must.OK(t, os.Remove(path))
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
	must.OK(t, err)
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
