//go:build unix

package search_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/search"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestSpecialLists replaces .gitignore by a named pipe and by an endless file: they have no
// rules. A link to a folder is a file, and a pipe is none.
func TestSpecialLists(t *testing.T) {
	root := tree(t, "a.txt", "b/a.txt", ".git/info/")
	for _, name := range []string{".gitignore", ".git/info/exclude", "b/.ignore", "pipe.txt"} {
		must.OK(t, syscall.Mkfifo(filepath.Join(root, name), 0o600))
	}
	for name, to := range map[string]string{".ignore": "/dev/zero", "b/.gitignore": "/dev/zero", "link.txt": "b"} {
		must.OK(t, os.Symlink(to, filepath.Join(root, name)))
	}
	must.Equal(t, "result", []string{"a.txt", "b/a.txt", "link.txt"}, paths(search.Files(t.Context(), "txt", []string{root, filepath.Join(root, ".gitignore")})))
}
