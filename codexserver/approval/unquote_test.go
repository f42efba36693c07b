package approval_test

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// unquote reads a shown command back into argv. It is a reference written without the
// code that quotes: bare characters, single quotes, double quotes, and $'…' with the
// escapes that package doc promises.
func unquote(shown string) ([]string, error) {
	var argv []string
	var word strings.Builder
	inWord := false
	for i := 0; i < len(shown); {
		switch {
		case shown[i] == ' ':
			if !inWord {
				return nil, errors.New("two blanks")
			}
			argv, inWord = append(argv, word.String()), false
			word.Reset()
			i++
			continue
		case strings.HasPrefix(shown[i:], "$'"):
			n, err := ansi(shown[i+2:], &word)
			if err != nil {
				return nil, err
			}
			i += 2 + n
		case shown[i] == '\'':
			n := strings.IndexByte(shown[i+1:], '\'')
			if n < 0 {
				return nil, errors.New("open single quote")
			}
			word.WriteString(shown[i+1 : i+1+n])
			i += n + 2
		case shown[i] == '"':
			i++
			for ; i < len(shown) && shown[i] != '"'; i++ {
				if strings.IndexByte("$`!", shown[i]) >= 0 {
					return nil, errors.New("special character in double quotes")
				}
				if shown[i] == '\\' {
					i++
				}
				if i < len(shown) {
					word.WriteByte(shown[i])
				}
			}
			if i >= len(shown) {
				return nil, errors.New("open double quote")
			}
			i++
		default:
			if c := shown[i]; !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("+-./:@]_", c) >= 0) {
				return nil, errors.New("bare " + strconv.Quote(string(c)))
			}
			word.WriteByte(shown[i])
			i++
		}
		inWord = true
	}
	if !inWord {
		return nil, errors.New("no last word")
	}
	return append(argv, word.String()), nil
}

// ansi reads what follows $' up to and with the closing quote.
func ansi(s string, word *strings.Builder) (int, error) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\'':
			return i + 1, nil
		case '\\':
			i++
			if i == len(s) {
				return 0, errors.New("open escape")
			}
			switch s[i] {
			case 'n', 'r', 't':
				word.WriteByte(map[byte]byte{'n': '\n', 'r': '\r', 't': '\t'}[s[i]])
			case '\\', '\'':
				word.WriteByte(s[i])
			case 'x':
				b, err := hex.DecodeString(s[i+1 : i+3])
				if err != nil {
					return 0, err
				}
				word.Write(b)
				i += 2
			case 'u':
				digits, _, ok := strings.Cut(s[i+1:], "}")
				r, err := strconv.ParseUint(strings.TrimPrefix(digits, "{"), 16, 32)
				if !ok || err != nil || !utf8.ValidRune(rune(r)) {
					return 0, errors.New(`bad \u`)
				}
				word.WriteRune(rune(r))
				i += len(digits) + 1
			default:
				return 0, errors.New("unknown escape " + s[i:i+1])
			}
		default:
			word.WriteByte(s[i])
		}
	}
	return 0, errors.New("open $'")
}
