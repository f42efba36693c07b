package terminal

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// FuzzShown shows any text as the output of a program and as a text of a model. What is shown
// must not have anything that a terminal interprets, or the mark of a question.
func FuzzShown(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[31mred\x1b[0m", "\x1b]8;;http://x\x07link", "a\rb", "\u202eback", "\xff\x9b", "日本\u0301 e\u0301\n- x y", "\x1b", "tab\tbed", "◆ Allow?"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		text := strings.ToValidUTF8(string(b), "?") // as JSON brings it
		shown := plain(Prose(text)) + "\n" + plain(Row(string(b)))
		harmless(t, shown)
		if strings.ContainsAny(shown, "\t◆") {
			t.Errorf("%q is shown as %q", b, shown)
		}
	})
}

func harmless(t *testing.T, shown string) {
	t.Helper()
	for _, r := range shown {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			t.Errorf("%q has %U", shown, r)
		}
	}
}

// FuzzJSONLine writes any string as a JSON line. The line must mean the same, and must not have
// anything that a terminal interprets.
func FuzzJSONLine(f *testing.F) {
	f.Add("right\u202eleft \u009b \U000e0001 \U0001f600 é \\ \" \n")
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		raw, err := json.Marshal(map[string]string{"text": s})
		if err != nil {
			t.Fatal(err)
		}
		line, ok := strings.CutSuffix(Line(raw), "\n")
		if !ok || strings.Contains(line, "\n") {
			t.Fatalf("no line: %q", line)
		}
		harmless(t, line)
		var back map[string]string
		if err := json.Unmarshal([]byte(line), &back); err != nil || back["text"] != s {
			t.Errorf("%q became %q: %v", s, back["text"], err)
		}
	})
}
