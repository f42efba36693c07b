package appserver

import (
	"errors"
	"strings"
	"testing"
)

// TestFaults checks that each error of Codex is known by its words alone, and that the first advice is given.
func TestFaults(t *testing.T) {
	for _, f := range faults {
		err := told("failed: " + f.said + " x")
		for _, other := range faults {
			if other.is != nil && errors.Is(err, other.is) != (other.is == f.is) {
				t.Errorf("%q: is %v", f.said, other.is)
			}
		}
		if !strings.HasPrefix(err.Error(), "failed: "+f.said+" x") || !strings.HasSuffix(err.Error(), f.write) {
			t.Errorf("%q: %v", f.said, err)
		}
	}
	err := told(`failed to load configuration: wire_api = "chat", legacy ` + "`profile")
	if !errors.Is(err, errConfiguration) || strings.Count(err.Error(), "; ") != 1 || !strings.HasSuffix(err.Error(), faults[1].write) {
		t.Errorf("several: %v", err)
	}
	if err := told("another"); err.Error() != "another" || errors.Is(err, errConfiguration) {
		t.Errorf("an unknown one: %v", err)
	}
}
