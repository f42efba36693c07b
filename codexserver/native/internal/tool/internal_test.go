package tool

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
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
	b.sees("one more", "a")
	must.Equal(t, "files after one more", 1, len(b.seen))
}
