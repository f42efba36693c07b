//go:build unix

package threadfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestHostile has in the place of a file what a store does not make.
func TestHostile(t *testing.T) {
	for name, tt := range map[string]struct {
		plant func(t *testing.T, path, other string)
		want  string
	}{
		"a link":            {func(t *testing.T, path, other string) { must.OK(t, os.Symlink(other, path)) }, "want a regular file"},
		"a link to nothing": {func(t *testing.T, path, other string) { must.OK(t, os.Symlink(other+"-none", path)) }, "want a regular file"},
		"a folder":          {func(t *testing.T, path, _ string) { must.OK(t, os.Mkdir(path, 0o700)) }, "want a regular file"},
		"others can write": {func(t *testing.T, path, other string) {
			must.OK(t, os.Rename(other, path))
			must.OK(t, os.Chmod(path, 0o640))
		}, "other users have access to it"},
	} {
		t.Run(name, func(t *testing.T) {
			s, other := New(t.TempDir(), nil), filepath.Join(t.TempDir(), "other")
			must.OK(t, os.MkdirAll(s.dir, 0o700))
			const text = `{"id":"` + id + `"}`
			must.OK(t, os.WriteFile(other, []byte(text), 0o600))
			tt.plant(t, filepath.Join(s.dir, id+".json"), other)
			got, err := s.Get(id, nil)
			for _, err := range []error{err, s.Put(thread(id))} {
				if got != nil || err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), s.dir) {
					t.Errorf("%v, %v, want %q", got, err, tt.want)
				}
			}
			if kept, err := os.ReadFile(other); err == nil && string(kept) != text {
				t.Errorf("the other file has %q", kept)
			}
		})
	}
}
