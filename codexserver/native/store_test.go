package native_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// storeBench returns a bench whose home has a store in the folder disk.
func storeBench(t *testing.T, disk string, turn providertest.Turn) (*bench, *workertest.Dir) {
	t.Helper()
	b := setup(t, "", native.Limits{}, turn)
	return b, b.keepIn(t, disk, 1)
}

// keepIn makes another engine, whose home has a store in the folder disk.
func (b *bench) keepIn(t *testing.T, disk string, epoch uint64) (d *workertest.Dir) {
	t.Helper()
	b.store, d = workertest.Mirror(t, b.home, disk, epoch)
	b.reopen(t)
	return d
}

// elsewhere gives the bench an empty home with the same configuration, as on another machine.
func (b *bench) elsewhere(t *testing.T) {
	t.Helper()
	text := read(t, filepath.Join(b.home, "config.toml"))
	b.home = t.TempDir()
	write(t, filepath.Join(b.home, "config.toml"), text)
}

// count returns how often each line is in a file.
func count(t *testing.T, path string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for line := range strings.Lines(string(text)) {
		lines[strings.TrimSpace(line)]++
	}
	return lines
}

// TestStoreFails makes the store fail at each write of a turn. What ran is in the store; nothing
// runs afterwards; a turn that succeeded has its end there. Then the home is lost, and the turn
// continues on another machine, where nothing runs again. Unless whole, it fails in one of two ways.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	kinds := []error{worker.ErrFull, worker.ErrUnavailable, worker.ErrFenced} // the engine treats all alike
	for n, does := range []bool{false, true} {
		for from, over := 1, false; !over && !t.Failed(); from++ {
			if !servertest.Plays(from+n, *whole) {
				continue
			}
			kind := kinds[from/3%len(kinds)]
			t.Run(fmt.Sprint(kind, does, from), func(t *testing.T) { over = storeFails(t, kind, does, from) })
		}
	}
}

// storeFails reports whether the turn has made fewer writes.
func storeFails(t *testing.T, kind error, does bool, from int) (over bool) {
	disk := t.TempDir()
	b, d := storeBench(t, disk, providertest.Turn{})
	b.provider.Reset(stepModel(work(b.cwd)...))
	writes := 0 // they fail from one on; that one may happen nevertheless
	d.Fail = func(method string) (error, bool) {
		if method != "append" && method != "put" {
			return nil, false
		}
		if writes++; writes < from {
			return nil, false
		}
		return kind, does && writes == from
	}
	h := &host{exec: allow}
	c := b.start(t, h, protocol.Config{})
	in := say("go")
	in.Key = "key"
	requests := len(b.provider.Requests())
	err := c.Turn(t.Context(), in)
	over = writes < from
	ran := filepath.Join(b.cwd, "ran")
	path := configured(t, h).RolloutPath
	rel, rerr := filepath.Rel(b.home, path)
	if rerr != nil {
		t.Fatal(rerr)
	}
	kept, rerr := os.ReadFile(filepath.Join(disk, rel))
	if rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
		t.Fatal(rerr)
	}
	switch has := strings.Contains(string(kept), `"task_complete"`); {
	case err == nil && !has:
		t.Error("the turn has ended, and its end is not in the store")
	case err != nil && over:
		t.Error(err)
	case err != nil && !strings.Contains(err.Error(), kind.Error()):
		t.Errorf("the turn failed without the reason: %v", err)
	}
	before := count(t, ran)
	for name, call := range map[string]string{"one": "c1", "two": "c3"} {
		if before[name] > 0 && !strings.Contains(string(kept), `"call_id":"`+call+`"`) {
			t.Errorf("%s ran, and its call is not in the store", name)
		}
	}
	asked := len(b.provider.Requests()) - requests
	if asked > 0 && !strings.Contains(string(kept), `"task_started"`) || asked > 1+strings.Count(string(kept), `"function_call_output"`) {
		t.Errorf("the model was asked %d times, and the store does not have why:\n%s", asked, kept)
	}
	if err := c.Close(); err != nil && !errors.Is(err, kind) {
		t.Error(err)
	}
	if over {
		return true
	}

	b.elsewhere(t)
	b.keepIn(t, disk, 2)
	again, err := b.engine.Find(t.Context(), c.ID())
	if errors.Is(err, engine.ErrNotFound) && len(before) == 0 && len(kept) == 0 {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	answer, notes, err := continued(t, b, again.File, "key", &host{exec: allow})
	after := count(t, ran)
	never := err != nil && strings.Contains(err.Error(), "nothing of it ran")
	for _, name := range []string{"one", "two"} {
		interrupted := strings.Contains(answer, "aborted") && len(notes) > 0
		switch {
		case after[name] > 1:
			t.Errorf("%s ran %d times", name, after[name])
		case after[name] == 0 && err == nil && !interrupted:
			t.Errorf("%s did not run, and nobody was told: %q", name, answer)
		}
	}
	if err != nil && !(never && len(before) == 0) && !strings.Contains(err.Error(), "the conversation cannot be written") {
		t.Errorf("the turn was not continued: %v", err)
	}
	return false
}

// A rollout outside of the home is not in the store, so no turn begins there.
func TestStoreElsewhere(t *testing.T) {
	b, _ := storeBench(t, t.TempDir(), providertest.Say("hello"))
	path := b.first(t, protocol.Config{})
	away := filepath.Join(t.TempDir(), filepath.Base(path))
	write(t, away, read(t, path))
	requests := len(b.provider.Requests())
	c := b.resume(t, away, protocol.Config{}, &host{})
	if err := c.Turn(t.Context(), say("again")); err == nil || !strings.Contains(err.Error(), "is not in") {
		t.Error(err)
	}
	diff(t, "requests", requests, len(b.provider.Requests()))
}
