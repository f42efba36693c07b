package terminal

import (
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
		if strings.ContainsRune(shown, '◆') || strings.ContainsFunc(shown, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%q is shown as %q", b, shown)
		}
	})
}
