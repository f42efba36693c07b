package policy

import (
	"errors"
	"strings"
	"testing"
)

// TestBounds has the longest text of each kind that is examined, and one byte more.
func TestBounds(t *testing.T) {
	for what, bound := range map[string]struct {
		most int
		fits func(n int) bool
	}{
		"a script": {128 << 10, func(n int) bool {
			_, err := ParseFile("#" + strings.Repeat("x", n-1))
			return !errors.Is(err, ErrScript)
		}},
		"statements": {128 << 10, func(n int) bool {
			for _, err := range Statements("#" + strings.Repeat("x", n-1)) {
				return err == nil
			}
			return true
		}},
	} {
		if !bound.fits(bound.most) {
			t.Errorf("%s: %d do not fit", what, bound.most)
		}
		if bound.fits(bound.most + 1) {
			t.Errorf("%s: %d fit", what, bound.most+1)
		}
	}
}
