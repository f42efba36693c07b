package safefile_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// TestEndlessFiles checks that reading fails for kernel files that count as regular but
// never end.
func TestEndlessFiles(t *testing.T) {
	for _, path := range []string{"/proc/self/mem", "/proc/self/pagemap", "/proc/kcore"} {
		if data, err := safefile.Read(path, 1<<20); err == nil {
			t.Errorf("%s: %d bytes", path, len(data))
		}
	}
}
