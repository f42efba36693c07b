package safefile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// TestRoom checks that nothing is left behind, and that a folder that cannot be made has no room.
func TestRoom(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	for _, size := range []int{0, 1, 1 << 20, 2 << 20} {
		if err := safefile.Room(dir, size); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := safefile.Room(filepath.Join(file, "folder"), 1); err == nil {
		t.Error("a file has room for files")
	}
}
