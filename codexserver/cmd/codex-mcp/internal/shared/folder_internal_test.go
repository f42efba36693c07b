//go:build linux || darwin

package shared

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestSweptLock waits for a lock whose file is swept meanwhile, and made again by another. The
// lock of the old file counts for nothing.
func TestSweptLock(t *testing.T) {
	folder, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	dir := folder.path
	synctest.Test(t, func(t *testing.T) {
		f := &Folder{path: dir, dir: folder.dir}
		lock := func() func() {
			unlock, err := f.lock(t.Context(), "x")
			if err != nil {
				t.Error(err)
				return func() {}
			}
			return unlock
		}
		swept := lock()
		got := make(chan func(), 1)
		go func() { got <- lock() }()
		time.Sleep(100 * time.Millisecond)
		if err := os.Remove(filepath.Join(dir, "x.lock")); err != nil {
			t.Fatal(err)
		}
		other := lock()
		swept()
		time.Sleep(100 * time.Millisecond)
		select {
		case unlock := <-got:
			t.Error("two processes have the lock")
			unlock()
			other()
		default:
			other()
			(<-got)()
		}
	})
}
