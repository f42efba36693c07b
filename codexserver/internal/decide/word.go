package decide

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

type Word struct {
	Text string // what the shell passes to the program
	// Open is true if the shell may make another word of it, several or none. In a plain script it has a
	// pattern or a tilde outside of quotes, in any other the shell may also compute it.
	Open bool
}

func wordsOf(argv []string) []Word {
	words := make([]Word, len(argv))
	for i, text := range argv {
		words[i].Text = text
	}
	return words
}

// readWord reads a word of a plain script. It returns false for one that the shell computes or joins from parts.
func readWord(w *syntax.Word) (Word, bool) {
	if len(w.Parts) != 1 {
		return Word{}, false
	}
	switch part := w.Parts[0].(type) {
	case *syntax.Lit:
		odd := unquoted(part.Value, "[]{}") >= 0 || strings.HasSuffix(part.Value, `\`)
		return Word{unescape(part.Value, ""), unquoted(part.Value, "*?~") >= 0}, !odd
	case *syntax.SglQuoted:
		return Word{Text: part.Value}, !part.Dollar
	case *syntax.DblQuoted:
		said := speak(w)
		return said, len(part.Parts) == 1 && !said.Open && !strings.Contains(said.Text, "\n")
	}
	return Word{}, false
}

// speak joins the parts of a word as the shell does. The word is open if the shell computes it.
func speak(w *syntax.Word) Word {
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if isPattern(part.Value) {
				return Word{Open: true}
			}
			b.WriteString(unescape(part.Value, ""))
		case *syntax.SglQuoted:
			if part.Dollar && strings.Contains(part.Value, `\`) {
				return Word{Open: true}
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || part.Dollar {
					return Word{Open: true}
				}
				b.WriteString(unescape(lit.Value, inQuotes))
			}
		default:
			return Word{Open: true}
		}
	}
	return Word{Text: b.String()}
}

// unquoted returns where an unquoted text first has one of some characters without a backslash, or -1.
func unquoted(lit, chars string) int {
	for i := 0; i < len(lit); i++ {
		if lit[i] == '\\' {
			i++
		} else if strings.IndexByte(chars, lit[i]) >= 0 {
			return i
		}
	}
	return -1
}

// isPattern reports whether the shell makes other words of an unquoted text: by the names of files, or by braces.
func isPattern(lit string) bool {
	brace := unquoted(lit, "{")
	return unquoted(lit, "*?[") >= 0 || brace >= 0 && unquoted(lit[brace:], ",.") >= 0
}

// inQuotes are the characters that a backslash escapes in double quotes.
const inQuotes = "$`\"\\"

// unescape removes the backslashes of a text. They escape some characters, "" is all.
func unescape(lit, escaped string) string {
	var b strings.Builder
	for i := 0; i < len(lit); i++ {
		if lit[i] == '\\' && i+1 < len(lit) && (escaped == "" || strings.IndexByte(escaped, lit[i+1]) >= 0) {
			if i++; lit[i] == '\n' {
				continue
			}
		}
		b.WriteByte(lit[i])
	}
	return b.String()
}
