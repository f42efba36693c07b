package git_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
)

// TestDiffIsBounded checks that a diff has every section whole, and that each change without one says why.
func TestDiffIsBounded(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\ntwo\n")
	r.write("b.bin", "\x00\x01")
	r.write("moved.txt", strings.Repeat("same\n", 20))
	r.commit("more")
	bounds := []int{1 << 20, 250, 0}
	var looks []*git.Before
	for range bounds {
		looks = append(looks, take(t, r.dir))
	}
	r.write("a.txt", "one\n2\n")
	r.write("b.bin", "\x00\x02")
	r.write("é.txt", "n\n")
	r.git("mv", "moved.txt", "there.txt")
	var whole []string
	for i, max := range bounds {
		all, diff, err := looks[i].Compare(t.Context(), max)
		if err != nil || len(diff) > max {
			t.Errorf("%d bytes of at most %d, %v", len(diff), max, err)
		}
		sections := slices.Collect(git.Sections(diff))
		if i == 0 {
			whole = sections
		}
		shown := 0
		for _, c := range all {
			if c.Why == "" {
				shown++
			} else if c.Why != "too large" {
				t.Errorf("%s: %s", c.Path, c.Why)
			}
		}
		if len(all) != 4 || len(whole) != 4 || len(sections) != shown || (max == 250) != (0 < shown && shown < 4) {
			t.Errorf("of at most %d bytes: %d changes, %d of them shown, in %d sections", max, len(all), shown, len(sections))
		}
		if slices.ContainsFunc(sections, func(s string) bool { return !slices.Contains(whole, s) }) {
			t.Errorf("of at most %d bytes: a section is not whole: %s", max, diff)
		}
	}
}
