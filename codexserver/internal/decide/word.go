package decide

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// speak joins the parts of a word as the shell does. The word is not known if the shell computes it.
func speak(w *syntax.Word) spoken {
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if isPattern(part.Value) {
				return spoken{}
			}
			b.WriteString(unescape(part.Value))
		case *syntax.SglQuoted:
			if part.Dollar && strings.Contains(part.Value, `\`) {
				return spoken{}
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || part.Dollar {
					return spoken{}
				}
				b.WriteString(unescapeQuoted(lit.Value))
			}
		default:
			return spoken{}
		}
	}
	return spoken{b.String(), true}
}

// isPattern reports whether the shell makes other words of an unquoted text: by the names of files, or
// by braces.
func isPattern(lit string) bool {
	braces := 0
	for i := 0; i < len(lit); i++ {
		switch lit[i] {
		case '\\':
			i++
		case '*', '?', '[':
			return true
		case '{':
			braces++
		case ',', '.':
			if braces > 0 {
				return true
			}
		}
	}
	return false
}

// unescape removes the backslashes of an unquoted text.
func unescape(lit string) string {
	var b strings.Builder
	for i := 0; i < len(lit); i++ {
		if lit[i] == '\\' && i+1 < len(lit) {
			if i++; lit[i] == '\n' {
				continue
			}
		}
		b.WriteByte(lit[i])
	}
	return b.String()
}

// unescapeQuoted removes the backslashes of a text in double quotes. There a backslash
// escapes only a few characters.
func unescapeQuoted(lit string) string {
	var b strings.Builder
	for i := 0; i < len(lit); i++ {
		if lit[i] == '\\' && i+1 < len(lit) && strings.IndexByte("$`\"\\", lit[i+1]) >= 0 {
			i++
		}
		b.WriteByte(lit[i])
	}
	return b.String()
}
