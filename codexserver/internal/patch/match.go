package patch

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode"
)

// line is a line of a file with its end: LF, CR LF, or nothing behind the last one.
type line struct{ text, end string }

// split returns the lines of a file.
func split(content string) (lines []line, texts []string) {
	n := strings.Count(content, "\n") + 1
	lines, texts = make([]line, 0, n), make([]string, 0, n)
	for text := range strings.Lines(content) {
		l := line{text: strings.TrimSuffix(text, "\n")}
		if l.text != text {
			l.end = "\n"
			if text, ok := strings.CutSuffix(l.text, "\r"); ok {
				l.text, l.end = text, "\r\n"
			}
		}
		lines, texts = append(lines, l), append(texts, l.text)
	}
	return lines, texts
}

// replacement replaces count lines from start on by new.
type replacement struct {
	start, count int
	new          []line
}

// maxComparisons is how many comparisons of lines the search for all hunks of a patch may
// take. Each hunk may need several for each line of its file.
const maxComparisons = 50_000_000

// errComparisons is the error of a patch that needs more.
var errComparisons = errors.New("finding its hunks takes too long: split the patch, or add the exact lines around each change")

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

// rewrite applies the hunks to a file's content. Each line that stays keeps its text and its end, also
// where the patch has it a little differently.
func (s *search) rewrite(content, path string, hunks []hunk) (string, error) {
	content, marked := strings.CutPrefix(content, byteOrderMark)
	lines, texts := split(content)
	if s.left -= len(lines) + 1; s.left < 0 {
		return "", errComparisons
	}
	var all []replacement
	at := 0
	for _, h := range hunks {
		r, next, err := h.locate(s, lines, texts, at, path)
		if err != nil {
			return "", err
		}
		all, at = append(all, r), next
	}
	// Hunks are in order, except additions at the end.
	sort.SliceStable(all, func(i, j int) bool { return all[i].start < all[j].start })
	out := make([]line, 0, len(lines))
	done := 0
	for _, r := range all {
		if r.start < done {
			return "", fmt.Errorf("%s: two hunks change these lines:\n%s", path, strings.Join(texts[r.start:r.start+r.count], "\n"))
		}
		out = append(out, lines[done:r.start]...)
		out = append(out, r.new...)
		done = r.start + r.count
	}
	return join(append(out, lines[done:]...), marked), nil
}

// join returns the content of lines. Only the last one may have no end.
func join(lines []line, marked bool) string {
	var b strings.Builder
	n := len(byteOrderMark)
	for _, l := range lines {
		n += len(l.text) + 2
	}
	b.Grow(n)
	if marked && (len(lines) == 0 || !strings.HasPrefix(lines[0].text, byteOrderMark)) {
		b.WriteString(byteOrderMark)
	}
	for i, l := range lines {
		b.WriteString(l.text)
		if l.end == "" && i < len(lines)-1 {
			l.end = endNear(lines, i)
		}
		b.WriteString(l.end)
	}
	return b.String()
}

// endNear returns the end for a line that comes behind the first n lines: that of the line before, or
// else of the next that has one.
func endNear(lines []line, n int) string {
	for i := n - 1; i >= 0; i-- {
		if lines[i].end != "" {
			return lines[i].end
		}
	}
	for _, l := range lines[n:] {
		if l.end != "" {
			return l.end
		}
	}
	return "\n"
}

// locate finds the hunk at or after line at. Next is where the next hunk may begin.
func (h hunk) locate(s *search, lines []line, texts []string, at int, path string) (replacement, int, error) {
	if h.after != nil {
		i := s.find(texts, h.after, at, false)
		if i < 0 {
			return replacement{}, 0, s.failed(path, h.after)
		}
		at = i + 1
	}
	old := h.old()
	if len(old) == 0 {
		return h.replace(lines, len(lines), 0), at, nil
	}
	i := s.find(texts, old, at, h.endOfFile)
	if i < 0 && old[len(old)-1] == "" {
		// An empty last line may mean the end of the file.
		h, old = h.withoutBlank(), old[:len(old)-1]
		i = s.find(texts, old, at, h.endOfFile)
	}
	if i < 0 {
		return replacement{}, 0, s.failed(path, h.old())
	}
	return h.replace(lines, i, len(old)).trim(lines), i + len(old), nil
}

// replace returns the replacement of count lines from start on.
func (h hunk) replace(lines []line, start, count int) replacement {
	r := replacement{start: start, count: count}
	at := start
	for _, l := range h.lines {
		switch l.kind {
		case kept:
			r.new = append(r.new, lines[at])
			at++
		case removed:
			at++
		case added:
			r.new = append(r.new, line{l.text, endNear(lines, at)})
		}
	}
	return r
}

// withoutBlank returns the hunk without its last old line, which is empty. What was kept there is added,
// unless the hunk ends with an empty line.
func (h hunk) withoutBlank() hunk {
	all := slices.Clone(h.lines)
	for i, l := range slices.Backward(all) {
		if l.kind == removed {
			all = slices.Delete(all, i, i+1)
			break
		}
		if l.kind == kept {
			all[i].kind = added
			break
		}
	}
	if n := len(all) - 1; n >= 0 && all[n].kind == added && all[n].text == "" {
		all = all[:n]
	}
	h.lines = all
	return h
}

// trim removes lines that do not change, so that hunks may share them.
func (r replacement) trim(lines []line) replacement {
	for r.count > 0 && len(r.new) > 0 && lines[r.start] == r.new[0] {
		r.start, r.count, r.new = r.start+1, r.count-1, r.new[1:]
	}
	for r.count > 0 && len(r.new) > 0 && lines[r.start+r.count-1] == r.new[len(r.new)-1] {
		r.count, r.new = r.count-1, r.new[:len(r.new)-1]
	}
	return r
}

// find returns the first line at or after at where lines match the pattern, or -1. It
// tries the strictest comparison first. With atEnd the pattern must end the file. It
// returns -1 when no comparisons are left.
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
	for _, same := range []func(a, b string) bool{
		func(a, b string) bool { return a == b },
		func(a, b string) bool { return trimRight(a) == trimRight(b) },
		func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) },
		func(a, b string) bool { return plain(a) == plain(b) },
	} {
		for i := at; i <= last && s.left >= 0; i++ {
			if slices.EqualFunc(lines[i:i+len(pattern)], pattern, func(a, b string) bool {
				s.left--
				return s.left >= 0 && same(a, b)
			}) {
				return i
			}
		}
	}
	return -1
}

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
