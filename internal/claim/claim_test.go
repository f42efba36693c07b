package claim_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/internal/claim"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func open(t *testing.T) *os.Root {
	root := must.Get(os.OpenRoot(t.TempDir()))(t)
	t.Cleanup(func() { root.Close() })
	return root
}

func TestLives(t *testing.T) {
	testenv.NeedsLinks(t)
	root := open(t)
	live := must.Get(claim.New(root, "live", ""))(t)
	defer live.Close()
	dead := must.Get(claim.New(root, "dead", ""))(t)
	must.OK(t, errors.Join(dead.Close(), root.Mkdir("folder", 0o700), root.Symlink("live", "link")))
	for name, want := range map[string]bool{"live": true, "dead": false, "missing": false, "folder": false, "link": false} {
		must.Equal(t, name, want, must.Get(claim.Lives(root, name))(t))
	}
	f := must.Get(root.OpenFile("dead", os.O_RDWR, 0))(t)
	defer f.Close()
	if err := safefile.Lock(f); err != nil { // who asked has let go of it
		t.Errorf("the file of the dead one: %v", err)
	}
	must.OK(t, root.Close())
	if got, err := claim.Lives(root, "live"); got || err == nil {
		t.Errorf("in a folder that is closed: %v, %v", got, err)
	}
}

// TestTake takes what a process has left. One of several that try gets it, and none after its file was removed.
func TestTake(t *testing.T) {
	testenv.NeedsUnix(t, testenv.OpenFiles)
	root := open(t)
	live := must.Get(claim.New(root, "live", ""))(t)
	defer live.Close()
	must.OK(t, must.Get(claim.New(root, "dead", ""))(t).Close())
	take := func(name string, want bool) *claim.Owner {
		t.Helper()
		o := must.Get(claim.Take(root, name))(t)
		must.Equal(t, name, want, o != nil)
		return o
	}
	take("live", false)
	take("missing", false)
	o := take("dead", true)
	take("dead", false) // somebody has it
	must.OK(t, o.Close())
	o = take("dead", true)
	must.OK(t, root.Remove(o.Name()), o.Close())
	take("dead", false)
}

// TestIsIn replaces the file of a process. Its lock no longer tells others anything.
func TestIsIn(t *testing.T) {
	testenv.NeedsUnix(t, testenv.OpenFiles)
	root := open(t)
	o := must.Get(claim.New(root, "o", ""))(t)
	defer o.Close()
	if !o.IsIn(root) {
		t.Error("a new file is not there")
	}
	other := must.Get(os.OpenRoot(t.TempDir()))(t)
	if o.IsIn(other) || other.Close() != nil || o.IsIn(other) {
		t.Error("the file is in another folder")
	}
	must.OK(t, root.Remove("o"))
	if o.IsIn(root) {
		t.Error("a removed file is there")
	}
	must.OK(t, root.WriteFile("o", nil, 0o600))
	if o.IsIn(root) {
		t.Error("another file is ours")
	}
	must.Check(t, o.Close())
	if err := o.Close(); err == nil || o.IsIn(root) {
		t.Errorf("closed again: %v", err)
	}
}

func TestWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	file := func() *os.File {
		f := must.Get(os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600))(t)
		t.Cleanup(func() { f.Close() })
		return f
	}
	synctest.Test(t, func(t *testing.T) {
		first, second := file(), file()
		must.OK(t, claim.Wait(t.Context(), first))
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := claim.Wait(ctx, second); !errors.Is(err, safefile.ErrLocked) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a locked file: %v", err)
		}
		time.AfterFunc(time.Minute, func() { first.Close() })
		begun := time.Now()
		if err := claim.Wait(t.Context(), second); err != nil || time.Since(begun) < time.Minute {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		if err := claim.Wait(t.Context(), first); err == nil || errors.Is(err, safefile.ErrLocked) {
			t.Errorf("a closed file: %v", err)
		}
	})
}

// TestAlone has many change a number in a file, each alone.
func TestAlone(t *testing.T) {
	dir := t.TempDir()
	file, n := filepath.Join(dir, "n"), 50
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			err := claim.Alone(filepath.Join(dir, "n.lock"), func() error {
				text, err := os.ReadFile(file)
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					return err
				}
				return os.WriteFile(file, append(text, 'x'), 0o600)
			})
			must.Check(t, err)
		})
	}
	all.Wait()
	if text, err := os.ReadFile(file); err != nil || len(text) != n {
		t.Errorf("%d of %d changes are there, %v", len(text), n, err)
	}
	wrong := errors.New("wrong")
	if err := claim.Alone(filepath.Join(dir, "n.lock"), func() error { return wrong }); !errors.Is(err, wrong) {
		t.Error(err)
	}
}
