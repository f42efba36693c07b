package intake_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/intake"
)

// TestBuffers checks that a buffer in use is not given to others.
func TestBuffers(t *testing.T) {
	var b intake.Buffers
	first := b.Get()
	b.Put(first)
	second, third := b.Get(), b.Get()
	if len(second) != len(first) || len(third) != len(first) || &second[0] == &third[0] {
		t.Errorf("buffers of %d, %d and %d bytes", len(first), len(second), len(third))
	}
}
