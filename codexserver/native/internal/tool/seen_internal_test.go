package tool

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"
)

// TestSeen remembers so many files, by their content, for several goroutines.
func TestSeen(t *testing.T) {
	b := &Toolbox{seen: map[string][sha256.Size]byte{}}
	var all sync.WaitGroup
	for who := range 2 {
		all.Go(func() {
			for i := range 5000 {
				b.sees(fmt.Sprint(who, "/", i), "a")
			}
		})
	}
	all.Wait()
	for path, want := range map[string]knowledge{"0/0": fresh, "1/4999": fresh, "2/0": unseen} {
		if got := b.knows(path, "a"); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	if got := b.knows("0/0", "b"); got != stale {
		t.Errorf("another content: %d", got)
	}
	b.sees("2/0", "a")
	if len(b.seen) != 1 || b.knows("2/0", "a") != fresh {
		t.Errorf("%d files after one more", len(b.seen))
	}
}
