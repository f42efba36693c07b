package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestBounds has the longest text of each kind that is examined or proposed, and one byte more.
func TestBounds(t *testing.T) {
	rule := func(words int) Rule {
		r := Rule{Prefix: []string{"go", ""}, Folder: "/work"}
		for r.Prefix[1] = "x"; len(r.Words()) < words; r.Prefix[1] += "x" {
		}
		return r
	}
	for what, bound := range map[string]struct {
		most int
		fits func(n int) bool
	}{
		"the words of a rule": {400, func(n int) bool { _, err := newProposal(rule(n)); return err == nil }},
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
		"a word's parts": {10_000, func(n int) bool { _, ok := parts(strings.Repeat("x", n)); return ok }},
		"the words of a command": {200, func(n int) bool {
			argv := make([]string, n)
			for i := range argv {
				argv[i] = fmt.Sprint("w", i)
			}
			argv[0] = "ls"
			_, replaceable := Place{Dir: t.TempDir(), Env: []string{"PATH=/usr/bin:/bin"}}.Replaceable(argv)
			return !replaceable
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
