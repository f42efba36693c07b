//go:build unix

package box_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestProtectedWithSpecialFiles checks that special files in place of .git or commondir are not followed.
func TestProtectedWithSpecialFiles(t *testing.T) {
	top := t.TempDir()
	var roots, want []string
	for name, lay := range map[string]func(dot string) error{
		"pipe": func(dot string) error { return syscall.Mkfifo(dot, 0o600) },
		"commondir pipe": func(dot string) error {
			return errors.Join(os.Mkdir(dot, 0o700), syscall.Mkfifo(filepath.Join(dot, "commondir"), 0o600))
		},
		"commondir zero": func(dot string) error {
			return errors.Join(os.Mkdir(dot, 0o700), os.Symlink("/dev/zero", filepath.Join(dot, "commondir")))
		},
		"zero": func(dot string) error { return os.Symlink("/dev/zero", dot) },
		"link": func(dot string) error { return os.Symlink("nothing", dot) },
	} {
		root := filepath.Join(top, name)
		dot := filepath.Join(root, ".git")
		must.OK(t, os.Mkdir(root, 0o700))
		must.OK(t, lay(dot))
		roots, want = append(roots, root), append(want, dot)
	}
	must.Equal(t, "the folders", want, box.New(box.Options{}).Protected(roots))
}
