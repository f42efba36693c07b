package safefile_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

func TestWrite(t *testing.T) {
	for _, tt := range []struct {
		name         string
		before, want fs.FileMode // before: 0 = there is no file
	}{
		{"new", 0, 0o600},
		{"open to all", 0o644, 0o600},
		{"for reading alone", 0o400, 0o400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", "b")
			path := filepath.Join(dir, "file")
			if tt.before != 0 {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte("before, and longer"), tt.before); err != nil {
					t.Fatal(err)
				}
			}
			if err := safefile.Write(path, []byte("after"), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != "after" {
				t.Errorf("%q, %v", got, err)
			}
			if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != tt.want {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	if err := safefile.Write(dir, []byte("x"), 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := safefile.Write(filepath.Join(blocked, "below"), []byte("x"), 0o600); err == nil {
		t.Error("a file became a folder")
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	if err := safefile.Write(loop, []byte("x"), 0o600); err == nil {
		t.Error("a link to itself was written")
	}
}

func TestWriteThroughLink(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := os.WriteFile(real, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if err := safefile.Write(link, []byte("after"), 0o600); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	if got, err := os.ReadFile(real); err != nil || string(got) != "after" {
		t.Errorf("%q, %v", got, err)
	}
}
