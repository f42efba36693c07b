//go:build unix

package safefile_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// TestSpecialFiles checks that special files are refused at once, also behind links.
func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, path := range []string{pipe, filepath.Join(dir, "socket"), "/dev/zero", "/dev/null", "/dev/tty", dir} {
		link := filepath.Join(dir, "to "+filepath.Base(path))
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{path, link} {
			var kind *safefile.KindError
			if _, err := safefile.Read(name, 100); !errors.As(err, &kind) || kind.Path != name {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	var kind *safefile.KindError
	if _, err := safefile.OpenIn(root, "pipe", os.O_RDWR); !errors.As(err, &kind) {
		t.Errorf("in a folder: %v", err)
	}
}
