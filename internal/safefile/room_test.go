package safefile_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// TestReserve checks that nothing is left behind, and that a folder that cannot be made has no room.
func TestReserve(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	for _, size := range []int{0, 1, 1 << 20, 2 << 20} {
		r := safefile.NewReserve(dir, size)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := r.Check(); err != nil {
					t.Errorf("%d bytes: %v", size, err)
				}
			})
		}
		all.Wait()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := r.Check(); err != nil {
			t.Errorf("%d bytes, in a folder that was removed: %v", size, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
		for range 2 {
			if err := r.Release(); err != nil {
				t.Error(err)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := safefile.NewReserve(filepath.Join(file, "folder"), 1).Check(); err == nil {
		t.Error("a file has room for files")
	}
	var none *safefile.Reserve
	if none.Check() != nil || none.Release() != nil {
		t.Error("no reserve fails")
	}
}
