package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// cells measures text that may have styles.
var cells = displaywidth.Options{ControlSequences: true}

// Wrap joins words to rows of at most width cells; a longer word is a row of its own.
func Wrap(words []string, gap string, width int) []string {
	if len(words) == 0 {
		return nil
	}
	return fit(words, gap, 0, width)
}

// fit is Wrap in a terminal whose first row is filled up to a column. Spaces at the end of a row
// may stand over.
func fit(words []string, gap string, col, width int) []string {
	rows := []string{""}
	for i, word := range words {
		lead := gap
		if i == 0 {
			lead = ""
		}
		if col > 0 && col+cells.String(lead+strings.TrimRight(word, " ")) > width {
			rows, lead, col = append(rows, ""), "", 0
		}
		rows[len(rows)-1] += lead + word
		col += cells.String(lead + word)
	}
	return rows
}

// breakable splits a line where it may be broken: after a space, and between wide letters, which
// languages without spaces have. It drops nothing.
func breakable(line string) []string {
	const wide = 2
	var words []string
	begin, end := 0, 0
	last, lastWidth := ' ', 0
	g := cells.StringGraphemes(line)
	for g.Next() {
		r, _ := utf8.DecodeRuneInString(g.Value())
		letters := max(lastWidth, g.Width()) == wide &&
			!unicode.In(r, unicode.Pe, unicode.Pf, unicode.Po) && !unicode.In(last, unicode.Ps, unicode.Pi)
		if end > begin && (last == ' ' || letters) {
			words = append(words, line[begin:end])
			begin = end
		}
		end += len(g.Value())
		last, lastWidth = r, g.Width()
	}
	return append(words, line[begin:])
}
