//go:build unix

package patch_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestModes checks that a file keeps its mode when it changes, also by a link, and when it moves, also over another one.
func TestModes(t *testing.T) {
	const change, move = "*** Update File: f\n@@\n-a\n+A", "*** Update File: f\n*** Move to: "
	for name, tt := range map[string]struct {
		mode   fs.FileMode
		text   string
		want   string
		modeOf fs.FileMode
	}{
		"a program that changes":           {0o755, change, "f", 0o755},
		"a program that changes by a link": {0o755, "*** Update File: link\n@@\n-a\n+A", "f", 0o755},
		"a program that moves":             {0o755, move + "sub/g\n@@\n-a\n+A", "sub/g", 0o755},
		"a program that moves alone":       {0o755, move + "g", "g", 0o755},
		"a secret that moves":              {0o600, move + "g\n@@\n-a\n+A", "g", 0o600},
		"for a group that writes":          {0o775, move + "g", "g", 0o775},
		"a file that nobody writes":        {0o555, move + "g", "g", 0o555},
		"a program that moves over a file": {0o755, move + "there\n@@\n-a\n+A", "there", 0o755},
		"a program that moves twice":       {0o755, move + "g\n*** Update File: g\n*** Move to: h", "h", 0o755},
		"moved away, then made anew":       {0o755, move + "g\n*** Add File: f\n+new", "f", 0o755},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeTree(t, dir, map[string]string{"f": "a\n", "there": "there\n"})
			link := filepath.Join(dir, "link")
			must.OK(t, errors.Join(os.Chmod(filepath.Join(dir, "f"), tt.mode), os.Symlink("f", link), plan(t, dir, tt.text).Apply()))
			if to, err := os.Readlink(link); err != nil || to != "f" {
				t.Errorf("the link leads to %q, %v", to, err)
			}
			if info, err := os.Stat(filepath.Join(dir, tt.want)); err != nil || info.Mode().Perm() != tt.modeOf {
				t.Errorf("%v, %v, want %v", info, err, tt.modeOf)
			}
		})
	}
}
