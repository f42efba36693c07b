package run

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestCaptureReachesItsLimit writes pieces that do not fill the limits of what is passed on. What
// is passed on has no gap, and is as long as a limit.
func TestCaptureReachesItsLimit(t *testing.T) {
	for size, want := range map[int]int{3000: 1 << 20, 1 << 17: 1 << 20, 1: 10_000, 100: 1_000_000} {
		var passed int
		pieces := 0
		c := NewCapture(func(_ protocol.OutputStream, b []byte) { passed, pieces = passed+len(b), pieces+1 })
		for range want/size + 2 {
			c.Add(protocol.Stdout, make([]byte, size))
		}
		if passed != want || pieces != (want+size-1)/size {
			t.Errorf("in pieces of %d: %d bytes were passed on in %d pieces, want %d", size, passed, pieces, want)
		}
	}
}

// TestCaptureKeeps writes as much as is kept of a stream, and a byte more.
func TestCaptureKeeps(t *testing.T) {
	const half = 512 << 10
	a, b := strings.Repeat("a", half), strings.Repeat("b", half)
	for _, tt := range []struct{ text, want string }{
		{a + b, a + b},
		{a + "b" + b, a + "\n[... omitted 1 bytes ...]\n" + b},
		{a + b + "cd", a + "\n[... omitted 2 bytes ...]\n" + b[2:] + "cd"},
		{a + b + b + b + "cd", a + "\n[... omitted 1048578 bytes ...]\n" + b[2:] + "cd"},
	} {
		for _, size := range []int{8 << 10, 1 << 20} {
			c := NewCapture(nil)
			for rest := tt.text; rest != ""; {
				n := min(size, len(rest))
				c.Add(protocol.Stderr, []byte(rest[:n]))
				rest = rest[n:]
			}
			if c.close(); c.stderr.String() != tt.want || c.both.String() != tt.want || c.stdout.String() != "" {
				t.Errorf("%d bytes in pieces of %d are kept as %d", len(tt.text), size, len(c.stderr.String()))
			}
			if c.Add(protocol.Stderr, []byte("late")); c.stderr.String() != tt.want {
				t.Error("late output is kept")
			}
		}
	}
}

// TestEnvironLetterCase has names that are one variable on Windows.
func TestEnvironLetterCase(t *testing.T) {
	p := EnvPolicy{Set: map[string]string{"PATH": "mine"}, IncludeOnly: []string{"path", "temp"}}
	for system, want := range map[string][]string{
		"windows": {"PATH=mine", "temp=2"},
		"linux":   {"PATH=mine", "Path=its", "Temp=1", "temp=2"},
	} {
		must.Equal(t, system, want, p.environ(system, []string{"Path=its", "Temp=1", "temp=2"}))
	}
}
