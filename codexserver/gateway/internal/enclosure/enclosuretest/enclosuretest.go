// Package enclosuretest skips tests of enclosures where this system can make none.
package enclosuretest

import (
	"errors"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure"
)

// Need skips the test if this system cannot keep several users apart. The tests' program must
// begin with [enclosure.Main].
func Need(t testing.TB) {
	t.Helper()
	switch err := try(); {
	case errors.Is(err, enclosure.ErrUnavailable):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
}

var try = sync.OnceValue(func() error { return enclosure.Try("/bin/true") })
