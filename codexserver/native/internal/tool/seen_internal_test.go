package tool

import (
	"crypto/sha256"
	"fmt"
	"testing"
)

// TestSeen remembers so many files, by their content.
func TestSeen(t *testing.T) {
	b := &Toolbox{seen: map[string][sha256.Size]byte{}}
	for i := range maxSeen {
		b.sees(fmt.Sprint(i), "a")
	}
	for _, path := range []string{"0", fmt.Sprint(maxSeen - 1), "none"} {
		want := path != "none"
		if seen, fresh := b.knows(path, "a"); seen != want || fresh != want {
			t.Errorf("%s: seen %t, fresh %t, want %t", path, seen, fresh, want)
		}
	}
	if seen, fresh := b.knows("0", "b"); !seen || fresh {
		t.Errorf("another content: seen %t, fresh %t", seen, fresh)
	}
	if b.sees("one more", "a"); len(b.seen) != 1 {
		t.Errorf("%d files after one more", len(b.seen))
	}
}
