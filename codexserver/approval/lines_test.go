package approval_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestForeignLines bounds the lines, the characters and the bytes of a text, and says what is left out.
func TestForeignLines(t *testing.T) {
	for _, tt := range []struct {
		text  string
		lines int
		last  string
	}{
		{strings.Repeat("a\n", 20), 20, `x: "a"`},
		{strings.Repeat("a\n\n \r", 21), 21, "x: (1 more lines are not shown)"},
		{strings.Repeat("a\u2028", 30), 21, "x: (10 more lines are not shown)"},
		{strings.Repeat("a", 64<<10), 1, ""},
		{strings.Repeat("a", 64<<10+1), 2, "x: (1 more bytes are not shown)"},
		{strings.Repeat(strings.Repeat("b", 5000)+"\n", 11), 0, "more lines are not shown)"},
	} {
		got := approval.ShowLines("x", tt.text)
		if last := got[len(got)-1]; tt.lines > 0 && len(got) != tt.lines || !strings.Contains(last, tt.last) {
			t.Errorf("%d lines, the last %.80q; want %d, %q", len(got), last, tt.lines, tt.last)
		}
		if n := len(strings.Join(got, "\n")); n > 6000 {
			t.Errorf("%d bytes are shown", n)
		}
	}
	for name, plain := range map[string]bool{strings.Repeat("a", 64): true, strings.Repeat("a", 65): false} {
		if got := elicit.ShowName(name); (got == `"`+name+`"`) != plain {
			t.Errorf("%d characters: %s", len(name), got)
		}
	}
}
