package program

import (
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	commit := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}}
	for _, tt := range []struct {
		name, module string
		settings     []debug.BuildSetting
		want         string
	}{
		{"a tag in a checkout", "v0.1.0", commit, "0.1.0 (0123456789ab, "},
		{"changes after a tag", "v0.1.0+dirty", commit, "0.1.0+dirty (0123456789ab, "},
		{"a commit after a tag", "v0.1.1-0.20261120111212-0123456789ab", commit, "0.1.1-0.20261120111212-0123456789ab (0123456789ab, "},
		{"go install at a version", "v0.1.0", nil, "0.1.0 ("},
		{"go run", "(devel)", nil, "dev ("},
		{"a commit of one letter", "(devel)", []debug.BuildSetting{{Key: "vcs.revision", Value: "0"}}, "dev (0, "},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: tt.module}, Settings: tt.settings}
		want := tt.want + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH
		must.Equal(t, tt.name, want, version(info)+" ("+build(info))
	}
	must.Equal(t, "without build information", "dev", version(nil))
}
