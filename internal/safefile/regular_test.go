package safefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := safefile.Read(path, 5); err != nil || string(data) != "12345" {
		t.Errorf("%q, %v", data, err)
	}
	var size *safefile.SizeError
	if _, err := safefile.Read(path, 4); !errors.As(err, &size) || size.Path != path || size.Max != 4 {
		t.Errorf("too large: %v", err)
	}
	var kind *safefile.KindError
	if _, err := safefile.Read(dir, 5); !errors.As(err, &kind) || kind.Path != dir || !kind.Mode.IsDir() {
		t.Errorf("a folder: %v", err)
	}
	if _, err := safefile.Read(filepath.Join(dir, "no"), 5); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Errorf("nothing: %v", err)
	}
}

func TestOpenIn(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("long content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var kind *safefile.KindError
	if _, err := safefile.OpenIn(root, "link", os.O_RDONLY); !errors.As(err, &kind) || kind.Path != filepath.Join(dir, "link") {
		t.Errorf("a link: %v", err)
	}
	if _, err := safefile.OpenIn(root, "no", os.O_RDONLY); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), filepath.Join(dir, "no")) {
		t.Errorf("nothing: %v", err)
	}
	f, err := safefile.OpenIn(root, "file", os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := f.ReadAll(100); err != nil || string(data) != "long content" {
		t.Errorf("%q, %v", data, err)
	}
	if err := errors.Join(f.Overwrite("short"), f.Close()); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(data) != "short" {
		t.Errorf("%q, %v", data, err)
	}
}
