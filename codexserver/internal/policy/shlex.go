package policy

import "strings"

// splitWords splits text into words as a POSIX shell would, but for anything
// that it would expand. It is not ok when a quote stays open.
func splitWords(text string) (words []string, ok bool) {
	for i := 0; ; {
		for i < len(text) && strings.IndexByte(" \t\n", text[i]) >= 0 {
			i++
		}
		if i == len(text) {
			return words, true
		}
		if text[i] == '#' {
			if end := strings.IndexByte(text[i:], '\n'); end >= 0 {
				i += end
				continue
			}
			return words, true
		}
		word, n, ok := splitWord(text[i:])
		if !ok {
			return nil, false
		}
		words, i = append(words, word), i+n
	}
}

// splitWord reads the word at the beginning of text.
func splitWord(text string) (word string, n int, ok bool) {
	var b strings.Builder
	quote := byte(0)
	for ; n < len(text); n++ {
		c := text[n]
		switch {
		case quote == '\'' && c != '\'':
			b.WriteByte(c)
		case c == '\\':
			if n++; n == len(text) {
				return "", 0, false
			}
			if quote == '"' && strings.IndexByte("$`\"\\\n", text[n]) < 0 {
				b.WriteByte('\\')
			}
			if text[n] != '\n' {
				b.WriteByte(text[n])
			}
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == 0 && strings.IndexByte(" \t\n", c) >= 0:
			return b.String(), n, true
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), n, quote == 0
}

// joinWords is the text that splits into words, quoted no more than needed:
// each word is cut into the longest pieces that can be bare, or in single, or
// in double quotes.
func joinWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quoteWord(w)
	}
	return strings.Join(quoted, " ")
}

func quoteWord(w string) string {
	if w == "" {
		return "''"
	}
	var b strings.Builder
	for w != "" {
		n, how := quotable(w)
		piece := w[:n]
		w = w[n:]
		switch {
		case how&bare != 0:
			b.WriteString(piece)
		case how&single != 0:
			b.WriteString("'" + piece + "'")
		default:
			b.WriteString(`"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(piece) + `"`)
		}
	}
	return b.String()
}

const (
	double = 1 << iota
	single
	bare
)

// quotable is the length of the longest beginning of w that one kind of quotes
// can hold, and the kinds that can.
func quotable(w string) (n, how int) {
	how = bare | single | double
	if w[0] == '^' { // old shells read it elsewhere than behind an opening single quote
		n, how = 1, single
	}
	for ; n < len(w) && how&kinds(w[n]) != 0; n++ {
		how &= kinds(w[n])
	}
	return n, how
}

func kinds(c byte) int {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("+-./:@]_", c) >= 0:
		return bare | single | double
	case c == '\'', c == '\\':
		return double
	case c == '$', c == '`', c == '!':
		return single
	case c == '^':
		return 0
	}
	return single | double
}
