package program

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"unicode"

	"github.com/go-json-experiment/json"
)

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
