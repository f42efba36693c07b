package audit_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
)

// BenchmarkEffect writes the three lines of a command that was asked about.
func BenchmarkEffect(b *testing.B) {
	l, err := audit.Open(filepath.Join(b.TempDir(), "log"), 64<<20)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	n := 0
	for b.Loop() {
		n++
		for _, line := range effect(fmt.Sprint(n)) {
			if _, err := l.Write(line); err != nil {
				b.Fatal(err)
			}
		}
	}
}
