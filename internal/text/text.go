// Package text shortens texts to a number of bytes and never cuts a character in two. A
// byte that is not UTF-8 counts as a character of its own and stays as it is. It also finds the
// word that a misspelt one stands for, and hides secrets in texts.
package text

import (
	"cmp"
	"iter"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

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

// SizeJSON returns how many bytes s has as JSON.
func SizeJSON(s string) int {
	b, _ := jsontext.AppendQuote(nil, s) // bytes that are not UTF-8 become U+FFFD
	return len(b)
}

// HeadJSON returns the longest beginning of s that has at most n bytes as JSON and ends with a whole character.
func HeadJSON(s string, n int) string {
	if len(s) <= n && SizeJSON(s) <= n {
		return s
	}
	return Head(s, sort.Search(min(len(s), max(n, 0)), func(i int) bool { return SizeJSON(Head(s, i+1)) > n }))
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

// Or returns words as "a, b or c".
func Or[W ~string](words []W) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i > 0 && i == len(words)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// Nearest returns the one of the words that somebody who wrote word may have meant, or "". At most
// two letters, and a third of word's, may be added, left out, changed or exchanged with the next.
// Of words that are equally near, one of the same length comes first, then the first in their order.
func Nearest(word string, words iter.Seq[string]) (nearest string) {
	most := min(2, len(word)/3)
	least := [2]int{most + 1}
	for w := range words {
		d := [2]int{Distance(word, w, most)}
		if len(w) != len(word) {
			d[1] = 1
		}
		if d[0] <= most && cmp.Or(slices.Compare(d[:], least[:]), strings.Compare(w, nearest)) < 0 {
			nearest, least = w, d
		}
	}
	return nearest
}

// Distance returns in how many letters two words differ, or more than most if it is more. It compares bytes.
func Distance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	before, last, row := []int(nil), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			d := last[j]
			if a[i] != b[j] {
				d++
			}
			d = min(d, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, before[j-1]+1)
			}
			row[j+1] = d
		}
		before, last, row = last, row, make([]int, len(b)+1)
	}
	return last[len(b)]
}
