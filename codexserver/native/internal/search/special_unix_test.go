//go:build unix

package search_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/search"
	"github.com/google/go-cmp/cmp"
)

// TestSpecialLists replaces .gitignore by a named pipe and by an endless file: they have no
// rules. A link to a folder is a file, and a pipe is none.
func TestSpecialLists(t *testing.T) {
	root := tree(t, "a.txt", "b/a.txt", ".git/info/")
	for _, name := range []string{".gitignore", ".git/info/exclude", "b/.ignore", "pipe.txt"} {
		if err := syscall.Mkfifo(filepath.Join(root, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{".ignore": "/dev/zero", "b/.gitignore": "/dev/zero", "link.txt": "b"} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a.txt", "b/a.txt", "link.txt"}, paths(search.Files(t.Context(), "txt", []string{root, filepath.Join(root, ".gitignore")}))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
