package plain

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a host that cuts messages shows in a terminal of 80 columns: it cuts a line after 74 columns, and of
// more than four lines it shows three.
const (
	MaxLines   = 4
	MaxColumns = 72
)

// Part returns text in at most that many columns, with the number of characters left
// out of its middle.
func Part(text string, most int) (shown string, whole bool) {
	if Columns(text) <= most {
		return text, true
	}
	start := Start(text, most/3)
	return start + Omit(text[len(start):], "", most-Columns(start)), false
}

// Omit returns the end of text in at most that many columns, after the number of characters
// before it. Both stand apart from the program's words in spans if fence is not empty.
func Omit(text, fence string, most int) string {
	n := utf8.RuneCountInString(text)
	marker := func(n int) string {
		s := "⟨" + Thousands(n) + " more characters⟩"
		if fence != "" {
			s += " "
		}
		return s
	}
	room := most - Columns(marker(n))
	if fence != "" {
		room -= Frame(text)
	}
	end := end(text, room)
	s := marker(n - utf8.RuneCountInString(end))
	if fence == "" {
		return s + end
	}
	return s + Span(end)
}

// Unmarked escapes what would pass for our own marks around a text: the brackets of the number
// of characters left out, and runs of backticks so long that a fence would fill the line. It
// reports whether the text without the latter is shown as it is.
func Unmarked(text string) (shown string, whole bool) {
	shown, whole = strings.ReplaceAll(strings.ReplaceAll(text, "⟨", `\u{27e8}`), "⟩", `\u{27e9}`), true
	if strings.Contains(shown, "```") {
		shown, whole = strings.ReplaceAll(shown, "`", `\u{60}`), false
	}
	return shown, whole
}

// Span returns s as a code span, apart from a backtick at its ends.
func Span(s string) string {
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || strings.TrimSpace(s) == "" {
		s = " " + s + " "
	}
	return Code(s)
}

// Fence returns the backticks around s as a code span.
func Fence(s string) string { return strings.Repeat("`", Backticks(s)+1) }

// Frame is how many columns a span of a part of s takes at most besides that part.
func Frame(s string) int { return 2*len(Fence(s)) + 2 }

// Columns returns how many columns of a terminal s takes at most. The letters of Europe, with
// everything else before Hangul, take one; any other character may take two.
func Columns(s string) (n int) {
	for _, r := range s {
		n += column(r)
	}
	return n
}

func column(r rune) int {
	switch {
	case r < 0x1100, strings.ContainsRune("…⟨⟩“”‘’–—", r):
		return 1
	}
	return 2
}

// Start returns the beginning of s that fits. A mark stays with its letter.
func Start(s string, most int) string {
	n, last := 0, 0
	for i, r := range s {
		if !unicode.Is(unicode.M, r) {
			last = i
		}
		if n += column(r); n > most {
			return s[:last]
		}
	}
	return s
}

// end returns the end of s that fits.
func end(s string, most int) string {
	n, last := 0, len(s)
	for i := len(s); i > 0; {
		r, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
		if n += column(r); n > most {
			break
		}
		if !unicode.Is(unicode.M, r) {
			last = i
		}
	}
	return s[last:]
}

// Wrap breaks s into full lines, in the middle of words, so that nothing is added or lost.
func Wrap(s string) []string { return broken(s, func(line string) int { return len(line) }) }

// Fold breaks a line of prose, after a space if there is one.
func Fold(s string) []string {
	return broken(s, func(line string) int {
		if i := strings.LastIndexByte(line, ' '); i > len(line)/2 {
			return i + 1
		}
		return len(line)
	})
}

// broken breaks s into lines of a brief question. at returns where to break a full line.
func broken(s string, at func(line string) int) (lines []string) {
	for {
		line := cmp.Or(Start(s, MaxColumns), s)
		if line == s {
			return append(lines, s)
		}
		line = line[:at(line)]
		lines, s = append(lines, line), s[len(line):]
	}
}

// Within cuts a line of our own words.
func Within(s string, most int) string {
	shown, _ := Part(s, most)
	return shown
}
