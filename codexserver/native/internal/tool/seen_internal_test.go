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
	for path, want := range map[string]bool{"0/0": true, "1/4999": true, "2/0": false} {
		if seen, fresh := b.knows(path, "a"); seen != want || fresh != want {
			t.Errorf("%s: seen %t, fresh %t, want %t", path, seen, fresh, want)
		}
	}
	if seen, fresh := b.knows("0/0", "b"); !seen || fresh {
		t.Errorf("another content: seen %t, fresh %t", seen, fresh)
	}
	b.sees("2/0", "a")
	if _, fresh := b.knows("2/0", "a"); len(b.seen) != 1 || !fresh {
		t.Errorf("%d files after one more", len(b.seen))
	}
}
