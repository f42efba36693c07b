package transcript

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestRing compares texts that share a ring with what was written: whatever is kept is right, whether in a file or
// in memory, and it is bounded.
func TestRing(t *testing.T) {
	for _, folder := range []string{"", t.TempDir()} {
		l := New(folder)
		defer l.Close()
		l.outputs.size = 3*maxTail + 7
		random := rand.New(rand.NewPCG(1, 2))
		texts, want := []*output(nil), []string(nil)
		for step := range 500 {
			s := strings.Repeat(fmt.Sprintf("%d,", step), random.IntN(5000))
			texts, want = append(texts, &output{}), append(want, s)
			l.ended(texts[step], s)
			if random.IntN(100) == 0 {
				l.outputs.flush()
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
