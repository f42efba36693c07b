package search

import (
	"strings"
	"unicode"
)

// A match scores scoreMatch, and a bonus at the beginning of a word. Adjacent matches share
// the bonus of the first of them; gaps reduce the score. The figures are those of the fzf
// family, and those measured on Codex 0.44.
const (
	scoreMatch       = 16
	gapStart         = 3
	gapExtension     = 1
	bonusSpace       = 10 // after white space, and at the beginning
	bonusDelimiter   = 9  // after a delimiter
	bonusBoundary    = 8  // after another mark, and for the mark itself
	bonusCamel       = 5  // a capital after a small letter, the first digit of a number
	bonusConsecutive = 4  // the least bonus next to another match
	firstMultiplier  = 2  // multiplies the bonus of a word's first match
)

// class is a kind of character; those from classDelimiter on can begin a word.
type class int

const (
	classSpace class = iota
	classMark
	classDelimiter
	classLower
	classUpper
	classLetter
	classDigit
)

func classOf(r rune) class {
	switch {
	case 'a' <= r && r <= 'z':
		return classLower
	case 'A' <= r && r <= 'Z':
		return classUpper
	case '0' <= r && r <= '9':
		return classDigit
	case strings.ContainsRune("/,:;|", r):
		return classDelimiter
	case unicode.IsSpace(r):
		return classSpace
	case r < 0x80:
		return classMark
	case unicode.IsLower(r):
		return classLower
	case unicode.IsUpper(r):
		return classUpper
	case unicode.IsNumber(r):
		return classDigit
	case unicode.IsLetter(r):
		return classLetter
	}
	return classMark
}

func bonus(before, now class) int {
	if now > classDelimiter {
		switch before {
		case classSpace:
			return bonusSpace
		case classDelimiter:
			return bonusDelimiter
		case classMark:
			return bonusBoundary
		}
	}
	switch {
	case before == classLower && now == classUpper, before != classDigit && now == classDigit:
		return bonusCamel
	case now == classSpace:
		return bonusSpace
	case now == classMark:
		return bonusBoundary
	}
	return 0
}

// cell is the best match of a needle's first runes whose last rune is at one position of
// the haystack.
type cell struct {
	score  int  // 0 means no match
	bonus  int  // the bonus that adjacent matches after it may share
	joined bool // the rune before it matches at the position before
	// gap is the best score of any earlier position, less the gap up to here. from is
	// that position counted from 1; 0 means none.
	gap, from int
}

// grid holds a row of cells for each rune of the needle. Its memory is reused.
type grid struct {
	cells []cell
	width int
}

func (g *grid) row(i int) []cell { return g.cells[i*g.width : (i+1)*g.width] }

// fill computes all cells and returns the best score and the position of its last match.
// The needle must be a subsequence of hay.
func (g *grid) fill(needle, hay []rune, bonuses []int) (best, end int) {
	g.width = len(hay)
	if n := len(needle) * g.width; cap(g.cells) < n {
		g.cells = make([]cell, n)
	} else {
		g.cells = g.cells[:n]
	}
	for i, want := range needle {
		row := g.row(i)
		for j, have := range hay {
			c := cell{}
			if j > 0 {
				c.gap, c.from = after(row, j)
			}
			if have == want {
				switch {
				case i == 0:
					c.score, c.bonus = scoreMatch+firstMultiplier*bonuses[j], bonuses[j]
				case j > 0:
					c.follow(&g.row(i - 1)[j-1], bonuses[j])
				}
			}
			row[j] = c
		}
	}
	for j, c := range g.row(len(needle) - 1) {
		// Among equal scores the last position wins; for a single character the first.
		if c.score > best || c.score == best && len(needle) > 1 {
			best, end = c.score, j
		}
	}
	return best, end
}

// after returns the best score of row before j, less the gap, and its position counted
// from 1.
func after(row []cell, j int) (score, from int) {
	last := row[j-1]
	opened, extended := max(last.score-gapStart, 0), max(last.gap-gapExtension, 0)
	if last.score > 0 && (opened > extended || last.from == 0) {
		return opened, j
	}
	return extended, last.from
}

// follow sets the score of a match after one of the previous rune: directly after it, with
// last as the previous match, or after a gap that ends at last.
func (c *cell) follow(last *cell, bonus int) {
	if last.from > 0 {
		c.score, c.bonus = last.gap+bonus+scoreMatch, bonus
	}
	if last.score == 0 {
		return
	}
	shared := max(last.bonus, bonusConsecutive)
	if bonus >= bonusBoundary && bonus > shared {
		shared = bonus
	}
	if joined := last.score + max(shared, bonus) + scoreMatch; joined > c.score {
		c.score, c.bonus, c.joined = joined, shared, true
	}
}

// trace appends the positions of the matches of a needle of n runes whose last match is at
// end.
func (g *grid) trace(indices []uint32, n, end int) []uint32 {
	for i := n - 1; i >= 0; i-- {
		indices = append(indices, uint32(end))
		if i == 0 {
			break
		}
		if g.row(i)[end].joined {
			end--
		} else {
			end = g.row(i - 1)[end-1].from - 1
		}
	}
	return indices
}
