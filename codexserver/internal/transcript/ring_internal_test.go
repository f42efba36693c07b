package transcript

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestRing compares outputs that share a ring with what was printed: whatever is kept is right, whether in a file or
// in memory, and it is bounded.
func TestRing(t *testing.T) {
	for _, folder := range []string{"", t.TempDir()} {
		l := New(folder)
		defer l.Close()
		l.outputs.size = 3*maxTail + 7
		random := rand.New(rand.NewPCG(1, 2))
		texts, want := make([]*output, 3), make([]string, 3)
		for i := range texts {
			texts[i] = &output{number: i + 1}
		}
		for step := range 500 {
			i := random.IntN(len(texts))
			s := strings.Repeat(fmt.Sprintf("%d,", step), random.IntN(5000))
			l.append(texts[i], s)
			want[i] += s
			if random.IntN(100) == 0 {
				l.rest()
			}
			kept := 0
			for i, o := range texts {
				p, err := l.printed(o, 0, 1<<20)
				if kept += len(p.Text); err != nil || p.Total != int64(len(want[i])) || p.Text != want[i][p.Offset:] {
					t.Fatalf("step %d: text %d has %d bytes of %d from %d on, %v", step, i, len(p.Text), p.Total, p.Offset, err)
				}
			}
			if most := l.outputs.size + max(maxTail, l.outputs.size/4); int64(kept) > most {
				t.Fatalf("step %d: %d bytes are kept", step, kept)
			}
		}
	}
}

// TestSectionsAreBounded has two commands print by turns: the index of what they print is bounded.
func TestSectionsAreBounded(t *testing.T) {
	l := New("")
	a, b := &output{number: 1}, &output{number: 2}
	for range maxSections {
		l.append(a, "a")
		l.append(b, "b")
	}
	p, err := l.printed(a, 0, 10)
	if err != nil || p.Text != strings.Repeat("a", 10) || p.Cut != maxSections/2 || len(l.sections) != maxSections {
		t.Errorf("%+v, %v, %d sections", p, err, len(l.sections))
	}
}
