package search

import (
	"slices"
	"strings"
	"unicode"
)

// pattern is a query; it holds the memory of its matching and serves one
// goroutine.
type pattern struct {
	words []word
	hay   haystack
	grid  grid
}

// word is one part of a query, folded as the haystack will be.
type word struct {
	runes               []rune
	ownCase, ownAccents bool // they mean what they are
}

// parsePattern splits a query at blanks, but not at those after a backslash.
func parsePattern(query string) *pattern {
	p := &pattern{}
	escaped := false
	for _, text := range strings.FieldsFunc(query, func(r rune) bool {
		split := unicode.IsSpace(r) && !escaped
		escaped = r == '\\'
		return split
	}) {
		w := word{}
		for _, r := range strings.ReplaceAll(text, `\ `, " ") {
			w.runes = append(w.runes, r)
			w.ownCase = w.ownCase || unicode.IsUpper(r)
			w.ownAccents = w.ownAccents || plainLetter(r) != r
		}
		p.words = append(p.words, w)
	}
	return p
}

// maxCells bounds the memory of one match: what is longer than a thousand
// letters in a path of a thousand matches nothing.
const maxCells = 1 << 20

// match scores a path and, unless indices is nil, sets them to the places of
// the matched characters, ascending.
func (p *pattern) match(path string, indices *[]uint32) (score int, ok bool) {
	p.hay.set(path)
	for i := range p.words {
		w := &p.words[i]
		folded := p.hay.fold(w)
		if len(w.runes)*len(folded) > maxCells || !subsequence(w.runes, folded) {
			return 0, false
		}
		best, end := p.grid.fill(w.runes, folded, p.hay.bonus)
		score += best
		if indices != nil {
			*indices = p.grid.trace(*indices, len(w.runes), end)
		}
	}
	if indices != nil {
		slices.Sort(*indices)
		*indices = slices.Compact(*indices)
	}
	return score, true
}

// subsequence reports whether needle's runes occur in hay in their order. It costs little
// and rules out most paths.
func subsequence(needle, hay []rune) bool {
	for _, r := range needle {
		i := slices.Index(hay, r)
		if i < 0 {
			return false
		}
		hay = hay[i+1:]
	}
	return true
}

// haystack is a path as it is matched.
type haystack struct {
	runes  []rune
	bonus  []int // what a match at each place is worth in addition to the match itself
	folded []rune
}

func (h *haystack) set(path string) {
	h.runes, h.bonus = h.runes[:0], h.bonus[:0]
	before := classSpace // a path begins as a word does
	for _, r := range path {
		class := classOf(r)
		h.runes = append(h.runes, r)
		h.bonus = append(h.bonus, bonus(before, class))
		before = class
	}
}

// fold returns the path as w compares it, until the next call.
func (h *haystack) fold(w *word) []rune {
	h.folded = h.folded[:0]
	for _, r := range h.runes {
		if !w.ownAccents {
			r = plainLetter(r)
		}
		if !w.ownCase {
			r = unicode.ToLower(r)
		}
		h.folded = append(h.folded, r)
	}
	return h.folded
}

// The letters of Latin-1 and Latin Extended-A from À on, and what they are
// without their accents; '.' stands for letters that stay.
const (
	firstAccented = 'À'
	plainLetters  = "AAAAAA.CEEEEIIII.NOOOOO.OUUUUY..aaaaaa.ceeeeiiii.nooooo.ouuuuy.y" +
		"AaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiIi..JjKk.LlLlLlLlLlNnNnNnn..OoOoOo..RrRrRrSsSsSsSsTtTtTtUuUuUuUuUuUuWwYyYZzZzZz"
)

func plainLetter(r rune) rune {
	i := int(r - firstAccented)
	if i < 0 || i >= len(plainLetters) || plainLetters[i] == '.' {
		return r
	}
	return rune(plainLetters[i])
}
