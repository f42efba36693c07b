package web

import (
	"strings"
	"unicode"
)

// clean returns a text in visible characters, with line breaks and tabs. Characters that show
// nothing could hide words from a person that the model reads. It also counts them.
func clean(text string) (cleaned string, dropped int) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	cleaned = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\r', r == '\u0085', r == '\u2028', r == '\u2029':
			return '\n'
		case r < 0x7f && r >= ' ':
			return r
		case r == '\u00ad' || r == '\ufeff': // soft hyphens and a byte order mark hide nothing
			return -1
		case unicode.In(r, unicode.C, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector), !unicode.IsGraphic(r):
			dropped++
			return -1
		}
		return r
	}, text)
	return cleaned, dropped
}
