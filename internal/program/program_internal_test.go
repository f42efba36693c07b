package program

import (
	"bytes"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"unicode"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
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

// TestLogLines checks that a line of the log has no character that a terminal would not show,
// in both formats, and that the JSON has the same text.
func TestLogLines(t *testing.T) {
	const hostile = "a\x1b]2;T\x07\u202eb\u009b31m\nc\u2028\x7f\U000e0041"
	for _, format := range []string{"", "json"} {
		var b bytes.Buffer
		log := Logger(&b, format, slog.LevelWarn)
		log.Warn("codex: "+hostile, "error", hostile, hostile, 1)
		log.Warn("second")
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if len(lines) != 2 || strings.ContainsFunc(b.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%q: %q", format, b.String())
		}
		if format == "" {
			continue
		}
		var line map[string]any
		if err := json.Unmarshal([]byte(lines[0]), &line); err != nil || line["msg"] != "codex: "+hostile || line["error"] != hostile || line[hostile] != 1.0 {
			t.Errorf("%q, %v", lines[0], err)
		}
	}
}
