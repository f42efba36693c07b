package search

import (
	"slices"
	"strings"
	"testing"
)

// TestManyStarsEnd checks that a crafted .gitignore does not delay a search.
func TestManyStarsEnd(t *testing.T) {
	one, ok := parseRule(strings.Repeat("**/a/", 60) + "b")
	if !ok {
		t.Fatal("not a rule")
	}
	names := slices.Repeat([]string{"a"}, 400)
	if one.match(names, false) {
		t.Error("matched without a b")
	}
	if !one.match(append(names, "b"), false) {
		t.Error("did not match")
	}
}
