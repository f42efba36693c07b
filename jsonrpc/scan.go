package jsonrpc

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// The scanner checks JSON by RFC 8259 in one pass and without allocating:
// grammar, UTF-8, control characters and depth. It looks at nothing but
// syntax; duplicate names below the envelope and unpaired surrogates are left
// to the decoder of the parameters, which knows the path to name. With a general decoder
// in its place calls take 30 to 40 % longer, and a flood twice as long.
//
// All functions take the whole line and an index, and return the index behind what they have
// read. So nothing is copied, and a fault has its position. They recurse as deep as the depth
// allows, which is why there is a limit.

// scanFault says why a scan stopped.
type scanFault uint8

const (
	scanOK scanFault = iota
	scanSyntax
	scanDepth
)

// skipSpace returns the index of the first byte at or after i that is not
// JSON white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		// Only these four, where other languages have more (RFC 8259, section 2).
		case ' ', '\t', '\r', '\n':
			i++
		default:
			return i
		}
	}
	return i
}

// skipValue returns the index after the value that begins at i. The value may
// nest depth levels deep. On a fault the index is where it was found. If it is an object, its
// members are noted in e, unless that is nil.
func skipValue(b []byte, i, depth int, e *envelope) (int, scanFault) {
	if i >= len(b) {
		return i, scanSyntax
	}
	switch b[i] {
	// The depth is checked before the recursion, which uses the stack.
	case '{':
		if depth <= 0 {
			return i, scanDepth
		}
		return skipObject(b, i+1, depth-1, e)
	case '[':
		if depth <= 0 {
			return i, scanDepth
		}
		return skipArray(b, i+1, depth-1)
	case '"':
		return skipString(b, i+1)
	case 't':
		return skipLiteral(b, i, "true")
	case 'f':
		return skipLiteral(b, i, "false")
	case 'n':
		return skipLiteral(b, i, "null")
	default:
		return skipNumber(b, i)
	}
}

// skipLiteral compares with the literal that the first byte announces. What follows a literal is
// checked by the caller: "truex" fails there.
func skipLiteral(b []byte, i int, lit string) (int, scanFault) {
	if len(b)-i >= len(lit) && string(b[i:i+len(lit)]) == lit {
		return i + len(lit), scanOK
	}
	return i, scanSyntax
}

// skipObject continues after the opening brace. It does not look into the values of members,
// beyond their syntax.
func skipObject(b []byte, i, depth int, e *envelope) (int, scanFault) {
	i = skipSpace(b, i)
	if i < len(b) && b[i] == '}' {
		return i + 1, scanOK
	}
	for {
		var f scanFault
		if i >= len(b) || b[i] != '"' {
			return i, scanSyntax
		}
		start := i
		if i, f = skipString(b, i+1); f != scanOK {
			return i, f
		}
		name := b[start:i]
		i = skipSpace(b, i)
		if i >= len(b) || b[i] != ':' {
			return i, scanSyntax
		}
		start = skipSpace(b, i+1)
		if i, f = skipValue(b, start, depth, nil); f != scanOK {
			return i, f
		}
		if e != nil {
			bit := memberBit(name[1 : len(name)-1])
			if bit == 0 { // "m\u0065thod" is the member method, too
				bit = memberBit(unquote(name))
			}
			e.put(bit, b[start:i:i])
		}
		i = skipSpace(b, i)
		if i >= len(b) {
			return i, scanSyntax
		}
		switch b[i] {
		case ',':
			i = skipSpace(b, i+1)
		case '}':
			return i + 1, scanOK
		default:
			return i, scanSyntax
		}
	}
}

// skipArray continues after the opening bracket.
func skipArray(b []byte, i, depth int) (int, scanFault) {
	i = skipSpace(b, i)
	if i < len(b) && b[i] == ']' {
		return i + 1, scanOK
	}
	for {
		var f scanFault
		if i, f = skipValue(b, i, depth, nil); f != scanOK {
			return i, f
		}
		i = skipSpace(b, i)
		if i >= len(b) {
			return i, scanSyntax
		}
		switch b[i] {
		case ',':
			i = skipSpace(b, i+1)
		case ']':
			return i + 1, scanOK
		default:
			return i, scanSyntax
		}
	}
}

// Masks for looking at eight bytes at once.
const (
	ones   = 0x0101010101010101
	highs  = 0x8080808080808080
	spaces = 0x2020202020202020
	quotes = 0x2222222222222222
	slants = 0x5c5c5c5c5c5c5c5c
)

// skipString continues after the opening quote.
//
// The mask marks the bytes that end a plain run: quote, backslash, control
// characters and everything outside ASCII. A borrow may mark a byte too many,
// but only above one that is rightly marked, so the lowest mark is always true.
func skipString(b []byte, i int) (int, scanFault) {
	for i < len(b) {
		// Most of a message is plain text in strings: eight bytes at a time, without a branch
		// for each.
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			m := (w | (w - spaces) | ((w ^ quotes) - ones) | ((w ^ slants) - ones)) & highs
			if m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			i += 8
		}
		if i >= len(b) {
			break
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, scanOK
		case c == '\\':
			n := escapeLen(b[i:])
			if n == 0 {
				return i, scanSyntax
			}
			i += n
		// Control characters must be escaped.
		case c < ' ':
			return i, scanSyntax
		case c < utf8.RuneSelf:
			i++
		default:
			// A width of one is an invalid byte; a U+FFFD that was sent is three wide.
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n <= 1 {
				return i, scanSyntax
			}
			i += n
		}
	}
	return i, scanSyntax
}

// escapeLen is the length of the escape sequence that b begins with, 0 if it
// is not one.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// skipNumber follows the grammar of RFC 8259, section 6: no leading zeros, and at least one digit
// after a point or an exponent.
func skipNumber(b []byte, i int) (int, scanFault) {
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b):
		return i, scanSyntax
	case b[i] == '0':
		i++
	case '1' <= b[i] && b[i] <= '9':
		i = skipDigits(b, i)
	default:
		return i, scanSyntax
	}
	if i < len(b) && b[i] == '.' {
		n := skipDigits(b, i+1)
		if n == i+1 {
			return n, scanSyntax
		}
		i = n
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		n := skipDigits(b, i)
		if n == i {
			return n, scanSyntax
		}
		i = n
	}
	return i, scanOK
}

// skipDigits returns i itself if there is no digit.
func skipDigits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

// checkValue checks that b is exactly one JSON value, with white space around it. Of an object it
// notes the members in e, unless that is nil.
func checkValue(b []byte, depth int, e *envelope) (int, scanFault) {
	i, f := skipValue(b, skipSpace(b, 0), depth, e)
	if f != scanOK {
		return i, f
	}
	if i = skipSpace(b, i); i != len(b) {
		return i, scanSyntax
	}
	return i, scanOK
}
