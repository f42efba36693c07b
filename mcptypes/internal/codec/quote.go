package codec

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

// Characters that have an escape of one letter, and these letters.
const shortEscaped, shortEscapes = "\b\f\n\r\t", "bfnrt"

// appendQuote appends s as a JSON string with no more escapes than needed. It does the same
// as jsontext.AppendQuote, but is faster for long texts: it copies eight bytes at a time if
// none needs an escape. ok is false if s is not UTF-8.
func appendQuote(b []byte, s string) (_ []byte, ok bool) {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for {
		n := plainPrefix(s)
		b = append(b, s[:n]...)
		if s = s[n:]; s == "" {
			return append(b, '"'), true
		}
		c, size := s[0], 1
		if c == '"' || c == '\\' {
			b = append(b, '\\', c)
		} else if i := strings.IndexByte(shortEscaped, c); i >= 0 {
			b = append(b, '\\', shortEscapes[i])
		} else if c < ' ' {
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		} else {
			var r rune
			if r, size = utf8.DecodeRuneInString(s); r == utf8.RuneError && size == 1 {
				return b, false
			}
			b = append(b, s[:size]...)
		}
		s = s[size:]
	}
}

// plainPrefix returns the length of the longest prefix of s that is ASCII without
// quotes, backslashes and controls.
func plainPrefix[T string | []byte](s T) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; n+8 <= len(s); n += 8 {
		w := s[n : n+8]
		x := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
			uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		if found := (x | (x - ones*' ') | (quote - ones) | (slash - ones)) & tops; found != 0 {
			return n + bits.TrailingZeros64(found)/8 // only what comes after it may be a borrow
		}
	}
	for n < len(s) && s[n] >= ' ' && s[n] < utf8.RuneSelf && s[n] != '"' && s[n] != '\\' {
		n++
	}
	return n
}
