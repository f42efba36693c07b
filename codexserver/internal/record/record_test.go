package record_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/store"
)

// Example counts in a file.
func Example() {
	home, err := os.MkdirTemp("", "record")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(home)
	r := record.Record{Path: filepath.Join(home, "codex-mcp", "count"), Lock: "count.lock", Limit: 1 << 10}
	for range 3 {
		if err := r.Change(func(before []byte) ([]byte, error) { return append(before, '|'), nil }); err != nil {
			log.Fatal(err)
		}
	}
	text, err := r.Read()
	fmt.Println(string(text), err)
	// Output: ||| <nil>
}

// TestChange checks what is in the file and in the store after changes that fail.
func TestChange(t *testing.T) {
	const name = "codex-mcp/rules.json" // a record that the store takes
	failed := errors.New("failed")
	for _, tt := range []struct {
		name  string
		first bool // nothing was there before
		edit  func(path string) error
		want  string // in the store
	}{
		{"it succeeds", false, func(string) error { return nil }, "new"},
		{"the first one", true, func(string) error { return nil }, "new"},
		{"edit fails", false, func(string) error { return failed }, "old"},
		{"the file cannot be written", false, func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, "old"},
		{"the first one cannot be written", true, func(path string) error { return os.Mkdir(path, 0o700) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			disk, err := store.OpenDir(t.TempDir(), 1)
			if err != nil {
				t.Fatal(err)
			}
			defer disk.Close()
			m, err := store.Open(t.Context(), home, disk, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			r := record.Record{Path: filepath.Join(home, filepath.FromSlash(name)), Lock: "lock", Limit: 10, Mirror: m}
			old := ""
			if !tt.first {
				old = "old"
				if err := r.Change(func([]byte) ([]byte, error) { return []byte(old), nil }); err != nil {
					t.Fatal(err)
				}
			}
			err = r.Change(func(before []byte) ([]byte, error) {
				if string(before) != old || (before == nil) != tt.first {
					t.Errorf("before it is %q", before)
				}
				return []byte("new"), tt.edit(r.Path)
			})
			if (err == nil) != (tt.want == "new") {
				t.Errorf("changed: %v", err)
			}
			if got, failed := r.Read(); failed == nil && string(got) != tt.want {
				t.Errorf("the file has %q, want %q", got, tt.want)
			}
			if got, failed := disk.Read(t.Context(), name, 0, 10); string(got) != tt.want || failed != nil && tt.want != "" {
				t.Errorf("the store has %q, %v; want %q", got, failed, tt.want)
			}
		})
	}
}

// TestRead checks which files have no content, and which are refused.
func TestRead(t *testing.T) {
	for name, tt := range map[string]struct {
		make func(path string) error
		ok   bool
	}{
		"none": {func(string) error { return nil }, true},
		"one of others": {func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("x"), 0o600), os.Chmod(path, 0o644))
		}, false},
		"a long one":       {func(path string) error { return os.WriteFile(path, []byte("12345"), 0o600) }, false},
		"a folder":         {func(path string) error { return os.Mkdir(path, 0o700) }, false},
		"a link elsewhere": {func(path string) error { return os.Symlink(os.Args[0], path) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := record.Record{Path: filepath.Join(t.TempDir(), "record"), Lock: "lock", Limit: 4}
			if err := tt.make(r.Path); err != nil {
				t.Fatal(err)
			}
			if got, err := r.Read(); got != nil || (err == nil) != tt.ok {
				t.Errorf("%q, %v", got, err)
			}
			before := 0
			err := r.Change(func(b []byte) ([]byte, error) { before = len(b); return nil, nil })
			if (err == nil) != tt.ok || before != 0 {
				t.Errorf("changed: %v, %d bytes before", err, before)
			}
		})
	}
}
