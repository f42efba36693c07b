package patch_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
)

// TestHunks checks that the hunks of a diff say what changes: with them the text before becomes the
// text after.
func TestHunks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	random := func() string {
		var b strings.Builder
		for range rnd.IntN(12) {
			b.WriteString([]string{"a\n", "b\n", "c\n"}[rnd.IntN(3)])
		}
		return b.String()
	}
	texts := [][2]string{{"a\nb\na\n", "a\n"}, {"", "a\n"}, {"a\n", ""}, {strings.Repeat("a\nb\n", 600), strings.Repeat("c\nd\n", 600)}}
	for range 3000 {
		texts = append(texts, [2]string{random(), random()})
	}
	for _, text := range texts {
		hunks := patch.Hunks(text[0], text[1])
		before, at := strings.SplitAfter(text[0], "\n"), 0
		var after strings.Builder
		for line := range strings.Lines(hunks) {
			rest := line[1:]
			switch line[0] {
			case '@':
				var from, count int
				if n, _ := fmt.Sscanf(line, "@@ -%d,%d", &from, &count); n == 1 || count > 0 {
					from-- // counted from 1, but for no lines, which follow a line
				}
				after.WriteString(strings.Join(before[at:from], ""))
				at = from
				continue
			case '+':
				after.WriteString(rest)
				continue
			case ' ':
				after.WriteString(rest)
			}
			if before[at] != rest {
				t.Fatalf("%q to %q: line %d is not %q:\n%s", text[0], text[1], at, rest, hunks)
			}
			at++
		}
		after.WriteString(strings.Join(before[at:], ""))
		if after.String() != text[1] {
			t.Fatalf("%q becomes %q and not %q by:\n%s", text[0], after.String(), text[1], hunks)
		}
	}
}
