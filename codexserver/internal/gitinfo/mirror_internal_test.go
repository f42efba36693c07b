package gitinfo

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestMirrorKeepsTheIndexTime checks the time of the copied index. Git compares it with
// the times of files to see which are unchanged.
func TestMirrorKeepsTheIndexTime(t *testing.T) {
	root := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "git", "-C", root, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	index := filepath.Join(root, ".git", "index")
	if err := os.WriteFile(index, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := time.Unix(1_700_000_000, 123456000)
	if err := os.Chtimes(index, want, want); err != nil {
		t.Fatal(err)
	}
	m, err := newMirror(t.Context(), root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer m.remove()
	if err := m.copyIndex(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(m.dir, "index"))
	if err != nil || !info.ModTime().Equal(want) {
		t.Errorf("%v, %v; want %v", info.ModTime(), err, want)
	}
}
