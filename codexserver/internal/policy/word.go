package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// StaticWords returns the words before the first one that the shell would compute.
func StaticWords(args []*syntax.Word) []string {
	var words []string
	for _, arg := range args {
		text, ok := staticWord(arg)
		if !ok {
			break
		}
		words = append(words, text)
	}
	return words
}

// staticWord joins the parts of a word as the shell does.
func staticWord(w *syntax.Word) (text string, ok bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(part.Value))
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", false
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || part.Dollar {
					return "", false
				}
				b.WriteString(unescapeQuoted(lit.Value))
			}
		default:
			return "", false
		}
	}
	return b.String(), true
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
