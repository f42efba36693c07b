package paths_test

import (
	"errors"
	"testing"

	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

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
		path, folder string
		local        bool
	}{
		{`C:\x`, drive, true},
		{`x\y`, drive, true},
		{`\x`, drive, true},
		{`\\?\C:\x`, drive, true},
		{`//?/c:/x`, drive, true},
		{`\\?\Volume{01}\x`, drive, true},
		{`\\host\share\x`, drive, false},
		{`//host/share/x`, drive, false},
		{`\/host/share`, drive, false},
		{`\\host`, drive, false},
		{`\\\host\share`, drive, false},
		{`\\?\UNC\host\share\x`, drive, false},
		{`\??\unc\host\share\x`, drive, false},
		{`\\.\pipe\x`, drive, false},
		{`\\.\C:\x`, drive, false},
		{`\\?\C:`, drive, false},
		{`\\?\GLOBALROOT\Device\x`, drive, false},
		{`\\HOST\Share\x`, shared, true},
		{`//?/UNC/host/share/x`, shared, true},
		{`C:\x`, shared, true},
		{`\\host\other\x`, shared, false},
		{`\\host\share2\x`, shared, false},
		{`\\other\share\x`, shared, false},
		{`\\.\pipe\x`, shared, false},
	} {
		if err := paths.Local("windows", tt.path, tt.folder); (err == nil) != tt.local || err != nil && !errors.Is(err, paths.ErrNetwork) {
			t.Errorf("%s from %s: %v", tt.path, tt.folder, err)
		}
		if err := paths.Local("linux", tt.path, tt.folder); err != nil {
			t.Errorf("%s on Linux: %v", tt.path, err)
		}
	}
}
