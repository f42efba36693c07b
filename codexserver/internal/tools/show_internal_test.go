package tools

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFit(t *testing.T) {
	for _, text := range []string{"", "abc", strings.Repeat("x", 5000), strings.Repeat("\x00\x1b\"\\", 5000), strings.Repeat("é€😀", 3000), strings.Repeat("😀\x01", 3000)} {
		for _, most := range []int{30, 31, 32, 33, 34, 35, 1000, 1 << 20} {
			got := fit(text, most)
			rest := text[len(got):]
			_, size := utf8.DecodeRuneInString(rest)
			if !strings.HasPrefix(text, got) || quoted(got) > most || !utf8.ValidString(got) {
				t.Errorf("%d of %.10q: %d bytes", most, text, len(got))
			}
			if rest != "" && quoted(got+rest[:size]) <= most {
				t.Errorf("%d of %.10q: there is room for more than %d bytes", most, text, len(got))
			}
		}
	}
}
