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

// FuzzLine writes any string as a line of JSON. The line must mean the same, and must not have anything that a terminal
// interprets.
func FuzzLine(f *testing.F) {
	f.Add("right\u202eleft \u009b \U000e0001 \U0001f600 é \\ \" \n")
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		raw, err := json.Marshal(map[string]string{"text": s})
		if err != nil {
			t.Fatal(err)
		}
		line, ok := strings.CutSuffix(Line(raw), "\n")
		if !ok || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q becomes %q", s, line)
		}
		var back map[string]string
		if err := json.Unmarshal([]byte(line), &back); err != nil || back["text"] != s {
			t.Errorf("%q became %q: %v", s, back["text"], err)
		}
	})
}
