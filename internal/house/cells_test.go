package house_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// longCells are how many cells of tables are longer than maxCell, at most, in pages that tests
// write. The counts only go down.
var longCells = map[string]int{}

const maxCell = 200

// TestDocsCells checks that the cells of tables are short: what is longer is prose.
func TestDocsCells(t *testing.T) {
	got := map[string]int{}
	for _, p := range pages(t) {
		for line := range strings.Lines(p.text) {
			if !strings.HasPrefix(line, "|") {
				continue
			}
			for cell := range strings.SplitSeq(line, " | ") {
				if utf8.RuneCountInString(strings.Trim(cell, "| \n")) > maxCell {
					got[p.file]++
				}
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(got)) {
		if got[file] > longCells[file] {
			t.Errorf("%s has %d cells of more than %d characters, want at most %d", file, got[file], maxCell, longCells[file])
		}
	}
	for file := range longCells {
		if got[file] == 0 {
			t.Errorf("%s has no long cell any more: remove its row", file)
		}
	}
}
