package proc

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestCaptureReachesItsLimit writes pieces that do not fill the limit of what is passed on. What
// is passed on has no gap, and is as long as the limit.
func TestCaptureReachesItsLimit(t *testing.T) {
	var passed int
	c := &capture{onOutput: func(_ protocol.OutputStream, b []byte) { passed += len(b) }}
	for range maxDeltaBytes/3000 + 2 {
		c.write(protocol.Stdout, make([]byte, 3000))
	}
	if passed != maxDeltaBytes {
		t.Errorf("%d bytes were passed on, want %d", passed, maxDeltaBytes)
	}
}
