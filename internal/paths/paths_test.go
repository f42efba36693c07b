package paths_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestBelow(t *testing.T) {
	for _, tt := range []struct {
		path, folder string
		want         bool
	}{
		{"/a", "/a", true}, {"/a/b", "/a", true}, {"/a/b", "/a/", true}, {"/a/b/../c", "/a", true}, {"/a/..b", "/a", true},
		{"/a", "/", true}, {"/", "/", true}, {"a/b", "a", true}, {"a", ".", true},
		{"/ab", "/a", false}, {"/a", "/a/b", false}, {"/a/../b", "/a", false}, {"/a/b/../..", "/a", false}, {"/", "/a", false},
		{"../a", ".", false}, {"/a", "a", false}, {"a", "/a", false}, {"..", ".", false},
	} {
		must.Equal(t, fmt.Sprint(tt.path, tt.folder), tt.want, paths.Below(filepath.FromSlash(tt.path), filepath.FromSlash(tt.folder)))
		rel, ok := paths.Within(filepath.FromSlash(tt.path), filepath.FromSlash(tt.folder))
		if ok != tt.want || ok && filepath.Join(filepath.FromSlash(tt.folder), rel) != filepath.Clean(filepath.FromSlash(tt.path)) || !ok && rel != "" {
			t.Errorf("%s in %s: %q, %t", tt.path, tt.folder, rel, ok)
		}
	}
}

// TestDrive has names of the same folder.
func TestDrive(t *testing.T) {
	for path, want := range map[string]string{
		`\\?\C:\work`: `C:\work`, `//?/C:/work`: `C:\work`, `C:\work`: `C:\work`, `C:/work`: `C:/work`,
		`\\?\C:`: `\\?\C:`, `\\?\UNC\host\share`: `\\?\UNC\host\share`, `\\.\C:\work`: `\\.\C:\work`,
	} {
		must.Equal(t, path, want, paths.Drive("windows", path))
		must.Equal(t, path+" on Linux", path, paths.Drive("linux", path))
	}
}

// TestLocal has names that Windows looks for in the network or among devices.
func TestLocal(t *testing.T) {
	const drive, shared = `C:\work`, `\\host\share\work`
	for _, tt := range []struct {
		folder string
		local  bool
		paths  []string
	}{
		{drive, true, []string{`C:\x`, `x\y`, `\x`, `\\?\C:\x`, `//?/c:/x`, `\\?\Volume{01}\x`}},
		{drive, false, []string{
			`\\host\share\x`, `//host/share/x`, `\/host/share`, `\\host`, `\\\host\share`, `\\?\UNC\host\share\x`, `\??\unc\host\share\x`,
			`\\.\pipe\x`, `\\.\C:\x`, `\\?\C:`, `\\?\GLOBALROOT\Device\x`,
		}},
		{shared, true, []string{`\\HOST\Share\x`, `//?/UNC/host/share/x`, `C:\x`}},
		{shared, false, []string{`\\host\other\x`, `\\host\share2\x`, `\\other\share\x`, `\\.\pipe\x`}},
	} {
		for _, path := range tt.paths {
			if err := paths.Local("windows", path, tt.folder); (err == nil) != tt.local || err != nil && !errors.Is(err, paths.ErrNetwork) {
				t.Errorf("%s from %s: %v", path, tt.folder, err)
			}
			if err := paths.Local("linux", path, tt.folder); err != nil {
				t.Errorf("%s on Linux: %v", path, err)
			}
		}
	}
}
