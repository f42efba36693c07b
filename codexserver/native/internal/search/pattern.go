package search

import (
	"slices"
	"strings"
	"unicode"
)

// pattern is a query with the buffers of its matches. It is for one goroutine.
type pattern struct {
	words []word
	hay   haystack
	grid  grid
}

// word is one word of a query.
type word struct {
	runes                   []rune
	exactCase, exactAccents bool // the word has capitals, or accents
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
			w.exactCase = w.exactCase || unicode.IsUpper(r)
			w.exactAccents = w.exactAccents || plainLetter(r) != r
		}
		p.words = append(p.words, w)
	}
	return p
}

// maxCells bounds the memory of one match: the letters of a word times those of a path. A
// larger pair does not match.
const maxCells = 1 << 20

// match scores a path. Unless indices is nil, it appends the positions of the matched
// characters, ascending.
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

// subsequence reports whether needle's runes occur in hay in order. It is cheap and rules
// out most paths.
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

// haystack is a path in the form for matching.
type haystack struct {
	runes  []rune
	bonus  []int // the bonus of a match at each position
	folded []rune
}

func (h *haystack) set(path string) {
	h.runes, h.bonus = h.runes[:0], h.bonus[:0]
	before := classSpace // the beginning of a path is the beginning of a word
	for _, r := range path {
		class := classOf(r)
		h.runes = append(h.runes, r)
		h.bonus = append(h.bonus, bonus(before, class))
		before = class
	}
}

// fold returns the path without the case and the accents that w ignores. The result is
// valid until the next call.
func (h *haystack) fold(w *word) []rune {
	h.folded = h.folded[:0]
	for _, r := range h.runes {
		if !w.exactAccents {
			r = plainLetter(r)
		}
		if !w.exactCase {
			r = unicode.ToLower(r)
		}
		h.folded = append(h.folded, r)
	}
	return h.folded
}

// The letters of Latin-1 and Latin Extended-A, beginning with À, without their accents;
// '.' marks letters that do not change.
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
