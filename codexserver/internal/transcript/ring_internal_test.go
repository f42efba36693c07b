package transcript

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestRing compares texts that share a ring with what was written to them: whatever is kept is right, whether in a
// file or in memory, and the room that all take adds up.
func TestRing(t *testing.T) {
	for _, store := range []*Store{NewStore(1 << 30), InFile(t.TempDir())} {
		f := store.newFile()
		f.outputs.size = 3*pieceSize + 7
		random := rand.New(rand.NewPCG(1, 2))
		texts, want := make([]*text, 3), make([]string, 3)
		for i := range texts {
			texts[i] = f.outputs.newText()
		}
		for step := range 500 {
			i := random.IntN(len(texts))
			switch {
			case random.IntN(20) == 0:
				texts[i].clear()
				want[i] = ""
			case random.IntN(100) == 0:
				f.lose()
			default:
				s := strings.Repeat(fmt.Sprintf("%d,", step), random.IntN(5000))
				texts[i].add(s)
				want[i] += s
			}
			kept := f.outputs.room
			for i, text := range texts {
				kept += int64(len(text.tail))
				p, err := text.read(0, 1<<20)
				if err != nil || p.Total != int64(len(want[i])) || p.Text != want[i][p.Offset:] {
					t.Fatalf("step %d: text %d has %d bytes of %d from %d on, %v", step, i, len(p.Text), p.Total, p.Offset, err)
				}
			}
			if int64(store.used) != kept {
				t.Fatalf("step %d: %d bytes are used, want %d", step, store.used, kept)
			}
		}
		f.close()
		if store.used != 0 || len(store.files) != 0 {
			t.Errorf("%d bytes are used after the end", store.used)
		}
	}
}
