package show

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/elicit"
)

// FuzzExcerpt checks that an excerpt has few short lines, and nothing that a person does not see.
func FuzzExcerpt(f *testing.F) {
	for _, text := range []string{"", "one", "a\r\nb\rc\r", "\x1b[1mx\x1b[0m\n\x1b]0;t\x07", strings.Repeat("\u202e\n", 30), strings.Repeat("x\r", 9000) + "\xff", "\n\n\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, ended := range []bool{false, true} {
			got := Excerpt(text, ended)
			for line := range strings.SplitSeq(got, "\n") {
				if utf8.RuneCountInString(line) > maxWidth {
					t.Errorf("too long: %q", line)
				}
			}
			if strings.Count(got, "\n") >= maxLines || elicit.ShowText(got) != got {
				t.Errorf("%q", got)
			}
		}
	})
}
