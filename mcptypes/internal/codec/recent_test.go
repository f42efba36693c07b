package codec

import (
	"fmt"
	"strings"
	"testing"
)

// TestRecent reads strings of each length, of which many share a place in the table.
func TestRecent(t *testing.T) {
	var r recent
	for round := range 3 {
		for i := range 300 {
			for _, want := range []string{strings.Repeat("x", i), fmt.Sprint(i), fmt.Sprintf("%d and the same text", i), fmt.Sprintf("the same text, and %d, and the same text", i)} {
				b := []byte(want)
				got := r.text(b)
				clear(b) // it is the caller's
				if got != want {
					t.Fatalf("round %d: got %q, want %q", round, got, want)
				}
			}
		}
	}
	for _, s := range r {
		if len(s) > 64 {
			t.Errorf("%q is kept", s)
		}
	}
}

func TestRecentAllocatesOnce(t *testing.T) {
	var r recent
	id := []byte("0198c1d2-7f6b-7c3e-9d55-2f1c4a7e8b90")
	var s string
	if n := testing.AllocsPerRun(100, func() { s = r.text(id) }); n != 0 || s != string(id) {
		t.Errorf("%v allocations, %q", n, s)
	}
}
