package appserver

import "strings"

// splitCommand undoes the quoting of a command line for a POSIX shell: words
// between blanks, single quotes, double quotes and backslashes. The app-server
// sends an argv joined that way. A line that cannot be such a one, because a
// quote in it has no end, comes back as one word, so that nothing of it is lost
// or shown as something else.
func splitCommand(line string) []string {
	words := []string{}
	var word strings.Builder
	in := false // a word has begun
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case ' ', '\t', '\n':
			if in {
				words = append(words, word.String())
				word.Reset()
				in = false
			}
		case '\'':
			n := strings.IndexByte(line[i+1:], '\'')
			if n < 0 {
				return []string{line}
			}
			word.WriteString(line[i+1 : i+1+n])
			i += n + 1
			in = true
		case '"':
			n := cutDouble(line[i+1:], &word)
			if n < 0 {
				return []string{line}
			}
			i += n
			in = true
		case '\\':
			if i+1 == len(line) {
				return []string{line}
			}
			i++
			if line[i] != '\n' {
				word.WriteByte(line[i])
				in = true
			}
		default:
			word.WriteByte(c)
			in = true
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words
}

// cutDouble appends what stands before the closing double quote to word, and
// returns how many bytes that took with the quote, -1 if there is none.
func cutDouble(s string, word *strings.Builder) int {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			return i + 1
		case '\\':
			if i+1 == len(s) {
				return -1
			}
			i++
			if !strings.ContainsRune("$`\"\\\n", rune(s[i])) {
				word.WriteByte('\\')
			}
			if s[i] != '\n' {
				word.WriteByte(s[i])
			}
		default:
			word.WriteByte(c)
		}
	}
	return -1
}
