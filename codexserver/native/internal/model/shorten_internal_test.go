package model

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestShorten checks that a rune is not split.
func TestShorten(t *testing.T) {
	for n := range 4 {
		if got := shorten(strings.Repeat("x", n) + strings.Repeat("€", 1000)); !utf8.ValidString(got) {
			t.Errorf("after %d bytes: it ends with %q", n, got[len(got)-8:])
		}
	}
}
