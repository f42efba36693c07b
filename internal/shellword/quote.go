// Package shellword quotes the words of a command for a POSIX shell, and splits
// a command line into its words.
package shellword

import "strings"

// Show quotes words for a person, as a shell of the system does: PowerShell on Windows, to which a backslash is like
// any other character, and elsewhere as [Join]. The system is a [runtime.GOOS].
func Show(system string, words ...string) string {
	if system != "windows" {
		return Join(words)
	}
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = "'" + strings.ReplaceAll(word, "'", "''") + "'"
		if slashes := strings.ReplaceAll(word, `\`, "/"); Quote(slashes) == slashes && word[0] != '@' {
			quoted[i] = word
		}
	}
	return strings.Join(quoted, " ")
}

// Join quotes each word with [Quote] and joins them into one line. For ordinary commands
// its output is that of the Rust crate shlex, which clients of Codex know. The words must
// not contain NUL, which cannot be quoted.
func Join(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Quote(word)
	}
	return strings.Join(quoted, " ")
}

// A quoting is a set of the ways in which a chunk of a word may be written.
type quoting uint8

const (
	double quoting = 1 << iota
	single
	bare
)

// Quote quotes one word. It cuts the word greedily into the longest chunks that one kind of
// quotes can hold. It writes a chunk bare if possible, otherwise in single quotes,
// otherwise in double quotes.
func Quote(word string) string {
	if word == "" {
		return "''"
	}
	var b strings.Builder
	for word != "" {
		n, how := chunk(word)
		switch {
		case how&bare != 0:
			b.WriteString(word[:n])
		case how&single != 0:
			b.WriteByte('\'')
			b.WriteString(word[:n])
			b.WriteByte('\'')
		default:
			b.WriteByte('"')
			for i := range n {
				if word[i] == '"' || word[i] == '\\' {
					b.WriteByte('\\')
				}
				b.WriteByte(word[i])
			}
			b.WriteByte('"')
		}
		word = word[n:]
	}
	return b.String()
}

// chunk returns the length of the longest prefix of word, never zero, that one
// kind of quotes can hold, and the kinds that can hold it.
func chunk(word string) (int, quoting) {
	how, i := bare|single|double, 0
	if word[0] == '^' {
		// ^ is safe only directly after an opening single quote. Elsewhere old shells
		// and bash's history expansion interpret it.
		how, i = single, 1
	}
	for ; i < len(word); i++ {
		next := how & allowed(word[i])
		if next == 0 {
			break
		}
		how = next
	}
	return i, how
}

// allowed returns the quotings that may hold c after other characters.
func allowed(c byte) quoting {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("+-./:@]_", c) >= 0:
		return bare | single | double
	case c == '\'', c == '\\': // fish interprets a backslash in single quotes
		return double
	case c == '$', c == '`', c == '!':
		return single
	case c == '^':
		return 0
	}
	return single | double
}
