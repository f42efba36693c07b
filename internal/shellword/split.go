package shellword

import "strings"

// Split splits a line that [Join] wrote into its words. It removes single quotes, double
// quotes and backslashes, and expands nothing. A # is an ordinary character. Split returns
// false if a quote is not closed or the line ends with a backslash.
func Split(line string) (words []string, ok bool) {
	words = []string{}
	for i := 0; ; {
		for i < len(line) && strings.IndexByte(" \t\n", line[i]) >= 0 {
			i++
		}
		if i == len(line) {
			return words, true
		}
		word, n, ok := splitWord(line[i:])
		if !ok {
			return nil, false
		}
		words, i = append(words, word), i+n
	}
}

// splitWord reads the word at the beginning of text. n is the length of the word in text.
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
