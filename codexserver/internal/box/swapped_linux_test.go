package box_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

// TestSwappedRoot replaces a root, or a folder above it, after the root was judged and
// before the command starts. The command may write only to the folder that was judged, or
// does not run.
func TestSwappedRoot(t *testing.T) {
	for _, swapped := range []string{"work/a/root", "work/a"} {
		t.Run(swapped, func(t *testing.T) {
			base := tree(t, "work/a/root/", "outside/root/")
			root := filepath.Join(base, "work/a/root")
			c := confine(t, write(root), filepath.Join(base, "work"))
			place, outside := filepath.Join(base, swapped), filepath.Join(base, "outside")
			if swapped == "work/a/root" {
				outside = filepath.Join(outside, "root")
			}
			if err := errors.Join(os.Rename(place, place+"-before"), os.Symlink(outside, place)); err != nil {
				t.Fatal(err)
			}
			res := ran(t, run.Spec{
				Argv: []string{"sh", "-c", "echo x > " + root + "/new"}, Dir: base, Env: []string{"PATH=/usr/bin:/bin"}, Confinement: c,
			})
			if _, err := os.Stat(filepath.Join(base, "outside/root/new")); res.ExitCode == 0 || err == nil {
				t.Errorf("it wrote outside: %d %q", res.ExitCode, res.Aggregated)
			}
		})
	}
}
