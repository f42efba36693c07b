package search

import (
	"strings"
	"testing"
)

// TestManyStarsEnd checks that a crafted .gitignore does not delay a search.
func TestManyStarsEnd(t *testing.T) {
	one, ok := parseRule(strings.Repeat("**/a/", 60) + "b")
	if !ok {
		t.Fatal("not a rule")
	}
	path, all := strings.Repeat("a/", 400), rules{one}
	if all.ignore(path+"a", false) {
		t.Error("matched without a b")
	}
	if !all.ignore(path+"b", false) {
		t.Error("did not match")
	}
}
