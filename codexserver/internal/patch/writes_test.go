//go:build unix

package patch_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/google/go-cmp/cmp"
)

// TestWrites checks what a plan says that it writes, and what the files say afterwards.
func TestWrites(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	writeTree(t, dir, map[string]string{"a.txt": "one\n", "gone.txt": "bye\n", "same.txt": "x\n"})
	p := plan(t, dir, "*** Update File: a.txt\n@@\n-one\n+two\n*** Add File: empty.txt\n*** Delete File: gone.txt\n*** Update File: same.txt\n@@\n-x\n+x")
	hash := func(text string) string {
		s := sha256.Sum256([]byte(text))
		return hex.EncodeToString(s[:])
	}
	writes := p.Writes()
	want := []patch.Write{
		{Path: filepath.Join(dir, "a.txt"), Before: hash("one\n"), After: hash("two\n")},
		{Path: filepath.Join(dir, "empty.txt"), After: hash("")},
		{Path: filepath.Join(dir, "gone.txt"), Before: hash("bye\n")},
	}
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	states := func(want patch.State) {
		t.Helper()
		for _, w := range writes {
			if got := w.State(); got != want {
				t.Errorf("%s: %v, want %v", w.Path, got, want)
			}
		}
	}
	states(patch.Undone)
	if err := p.Apply(); err != nil {
		t.Fatal(err)
	}
	states(patch.Done)
	for _, w := range writes {
		if err := os.WriteFile(w.Path, []byte("a part"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	states(patch.Neither)
	for _, w := range writes { // a folder cannot be read
		if err := os.Remove(w.Path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(w.Path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	states(patch.Neither)
}
