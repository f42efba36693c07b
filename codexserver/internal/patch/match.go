package patch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// endOf returns the end of a line: LF, CR LF, or nothing behind the last one.
func endOf(line string) string {
	switch {
	case strings.HasSuffix(line, "\r\n"):
		return "\r\n"
	case strings.HasSuffix(line, "\n"):
		return "\n"
	}
	return ""
}

const (
	maxComparisons = 50_000_000 // of lines, for all hunks of a patch: each may need several for each line of its file
	splitCost      = 8          // how many take as long as splitting one line off
)

var errComparisons = errors.New("finding its hunks takes too long: split the patch, or add the exact lines around " +
	"each change")

// search counts the comparisons of lines that are left.
type search struct{ left int }

// failed returns the error for lines that find has not found.
func (s *search) failed(path string, lines []string) error {
	if s.left < 0 {
		return errComparisons
	}
	return fmt.Errorf("%s does not have these lines in this place:\n%s", path, strings.Join(lines, "\n"))
}

// byteOrderMark is what some editors put before the first line.
const byteOrderMark = "\ufeff"

// rewrite applies the hunks to a file's content. A line that stays keeps its bytes, also where the patch differs.
func (s *search) rewrite(content, path string, hunks []hunk) (string, error) {
	content, marked := strings.CutPrefix(content, byteOrderMark)
	lines := slices.Collect(strings.Lines(content))
	if s.left -= splitCost * (len(lines) + 1); s.left < 0 {
		return "", errComparisons
	}
	gone, inserted, at := make([]bool, len(lines)), map[int][]string{}, 0
	for _, h := range hunks {
		h, start, next, err := h.locate(s, lines, at, path)
		if err != nil {
			return "", err
		}
		at = next
		for _, l := range h.lines {
			if l[0] == added {
				inserted[start] = append(inserted[start], l[1:]+endNear(lines, start))
				continue
			}
			if l[0] == removed && gone[start] { // a hunk at the end of the file may lie before another
				return "", fmt.Errorf("%s: two hunks change these lines:\n%s", path, strings.Join(h.old(), "\n"))
			}
			gone[start] = gone[start] || l[0] == removed
			start++
		}
	}
	out := make([]string, 0, len(lines))
	for i := range lines {
		out = append(out, inserted[i]...)
		if !gone[i] {
			out = append(out, lines[i])
		}
	}
	out = append(out, inserted[len(lines)]...)
	for i, line := range out[:max(0, len(out)-1)] { // only the last one may have no end
		if endOf(line) == "" {
			out[i] += endNear(out, i)
		}
	}
	content = strings.Join(out, "")
	if marked && !strings.HasPrefix(content, byteOrderMark) {
		content = byteOrderMark + content
	}
	return content, nil
}

// endNear returns the end for a line behind the first n lines: that of the line before, or else of the next with one.
func endNear(lines []string, n int) string {
	for _, line := range slices.Backward(lines[:n]) {
		if end := endOf(line); end != "" {
			return end
		}
	}
	for _, line := range lines[n:] {
		if end := endOf(line); end != "" {
			return end
		}
	}
	return "\n"
}

// locate finds the hunk at or after line at, and returns it as it fits there. Next is where the next hunk may begin.
func (h hunk) locate(s *search, lines []string, at int, path string) (found hunk, start, next int, err error) {
	if h.after != nil {
		i := s.find(lines, h.after, at, false)
		if i < 0 {
			return h, 0, 0, s.failed(path, h.after)
		}
		at = i + 1
	}
	old := h.old()
	if len(old) == 0 {
		return h, len(lines), at, nil
	}
	found, start = h, s.find(lines, old, at, h.endOfFile)
	if start < 0 && old[len(old)-1] == "" {
		// An empty last line may mean the end of the file.
		found, old = h.withoutBlank(), old[:len(old)-1]
		start = s.find(lines, old, at, h.endOfFile)
	}
	if start < 0 {
		return h, 0, 0, s.failed(path, h.old())
	}
	return found, start, start + len(old), nil
}

// withoutBlank returns the hunk without its last old line, an empty one. A kept one is added, unless it is the last.
func (h hunk) withoutBlank() hunk {
	all := slices.Clone(h.lines)
	for i, l := range slices.Backward(all) {
		if l[0] == removed {
			all = slices.Delete(all, i, i+1)
			break
		}
		if l[0] == kept {
			all[i] = string(added) + l[1:]
			break
		}
	}
	if n := len(all) - 1; n >= 0 && all[n] == string(added) {
		all = all[:n]
	}
	h.lines = all
	return h
}

// find returns the first line at or after at where lines match the pattern, or -1. It tries the strictest comparison
// first. With atEnd the pattern must end the file. It returns -1 when no comparisons are left.
func (s *search) find(lines, pattern []string, at int, atEnd bool) int {
	last := len(lines) - len(pattern)
	if last < 0 {
		return -1
	}
	if len(pattern) == 0 {
		return at
	}
	if atEnd {
		at = last
	}
	for _, form := range []func(string) string{asWritten, trimRight, strings.TrimSpace, plain} {
		want := make([]string, len(pattern))
		for i, line := range pattern {
			want[i] = form(line)
		}
		for i := at; i <= last && s.left >= 0; i++ {
			if slices.EqualFunc(lines[i:i+len(want)], want, func(line, want string) bool {
				s.left--
				return s.left >= 0 && form(line) == want
			}) {
				return i
			}
		}
	}
	return -1
}

func asWritten(s string) string { return strings.TrimSuffix(s, endOf(s)) }

func trimRight(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) }

// plain returns a line without blanks around it and with plain punctuation.
func plain(s string) string {
	return strings.ReplaceAll(strings.Map(func(r rune) rune {
		switch {
		case r >= '\u2010' && r <= '\u2015', r == '\u2212':
			return '-'
		case r >= '\u2018' && r <= '\u201B':
			return '\''
		case r >= '\u201C' && r <= '\u201F':
			return '"'
		case r == '\u00A0', r >= '\u2002' && r <= '\u200A', r == '\u202F', r == '\u205F', r == '\u3000':
			return ' '
		}
		return r
	}, strings.TrimSpace(s)), "…", "...")
}
