// Package text shortens texts to a number of bytes and never cuts a character in two. A
// byte that is not UTF-8 counts as a character of its own and stays as it is.
package text

import "unicode/utf8"

// Head returns the longest beginning of s that has at most n bytes and ends with a whole
// character. It is empty if n is not positive.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	begin, _ := character(s, max(n, 0))
	return s[:begin]
}

// Tail returns the longest end of s that has at most n bytes and begins with a whole
// character. It is empty if n is not positive.
func Tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	_, end := character(s, len(s)-max(n, 0))
	return s[end:]
}

// Brief returns the [Head] of s, with an ellipsis after it if more follows. The ellipsis is
// not one of the n bytes.
func Brief(s string, n int) string {
	if head := Head(s, n); len(head) < len(s) {
		return head + "…"
	}
	return s
}

// character returns where the character begins and ends that a cut before s[i] would split,
// or i twice.
func character(s string, i int) (begin, end int) {
	for begin := max(i-utf8.UTFMax+1, 0); begin < i; begin++ {
		if _, size := utf8.DecodeRuneInString(s[begin:]); begin+size > i {
			return begin, begin + size
		}
	}
	return i, i
}
