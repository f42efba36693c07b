package plain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestStackedMarks checks that at most eight combining marks in a row are shown as they are.
// More of them would cover the lines around.
func TestStackedMarks(t *testing.T) {
	acute := strings.Repeat("\u0301", 8)
	mixed := "\u0e31\u0e48\u0301\u20dd\u0338\u0327\u0e49\u0489" // of every category
	for _, tt := range []struct{ text, want string }{
		{"e" + acute + "!", "e" + acute + "!"},
		{"e" + acute + "\u0301!", "e" + acute + `\u{301}!`},
		{"e" + acute + "\u0301\u0302x\u0301", "e" + acute + `\u{301}\u{302}x` + "\u0301"},
		{"ก" + mixed, "ก" + mixed},
		{"ก" + mixed + "\u0e31", "ก" + mixed + `\u{e31}`},
		{"e" + acute + "e" + acute, "e" + acute + "e" + acute},
	} {
		must.Equal(t, fmt.Sprintf("%+q", tt.text), tt.want, plain.Text(tt.text))
		command, _ := plain.Command([]string{"echo", tt.text})
		must.Equal(t, fmt.Sprint(tt.text, command), tt.want != tt.text, strings.Contains(command, " $'"))
	}
}

// TestPath quotes only what could be mistaken for something else.
func TestPath(t *testing.T) {
	for path, quoted := range map[string]bool{
		"/a b": false, `C:\a`: false, "it's": false, "": true, "a ": true, " a": true, `"a"`: true, "'a": true, "$'a'": true, "a`b": true, "a\n": true,
	} {
		got, _ := plain.Path(path)
		must.Equal(t, fmt.Sprintf("%q: %s", path, got), quoted, got != path)
	}
}

func TestOneLine(t *testing.T) {
	for _, tt := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 0, ""},
		{"plain  text", 0, "plain  text"},
		{"one\nword  more", 0, "one word  more"},
		{" \n\t a\r\n\r\n b\t c \n", 0, "a b c"},
		{"a\x1b]2;T\x07\u202eb\u009b31m\xff\u2028c\v", 0, `a\x1b]2;T\x07\u{202e}b\u{9b}31m\xff\u{2028}c\x0b`},
		{"e" + strings.Repeat("\u0301", 9), 0, "e" + strings.Repeat("\u0301", 8) + `\u{301}`},
		{`'a  b' $'c\nd' "\\n"`, 0, `'a  b' $'c\nd' "\\n"`},
		{"✔\ufe0f done\ufe0f", 0, "✔ done"},
		{"日本語", 3, "日本語"},
		{"日本語x", 3, "日本語…"},
		{"ab\n\n\n", 2, "ab"},
		{"ab\n\n\nc", 2, "ab…"},
		{"\u202e", 3, `\u{…`},
		{strings.Repeat("\n", 1000) + "x", 3, "x"},
	} {
		must.Equal(t, fmt.Sprintf("%+q, %d", tt.text, tt.limit), tt.want, plain.OneLine(tt.text, tt.limit))
	}
}
