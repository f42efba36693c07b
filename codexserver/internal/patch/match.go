package patch

import (
	"errors"
	"slices"
	"sort"
	"strings"
	"unicode"
)

// replacement replaces count lines from start on by new.
type replacement struct {
	start, count int
	new          []string
}

// maxComparisons is how many comparisons of lines the search for all hunks of a patch may
// take. Each hunk may need several for each line of its file.
const maxComparisons = 50_000_000

// errComparisons is the error of a patch that needs more.
var errComparisons = errors.New("finding its hunks takes too long: split the patch, or add the exact lines around each change")

// search counts the comparisons of lines that are left.
type search struct{ left int }

// rewrite applies the hunks to a file's content.
func (s *search) rewrite(content, path string, hunks []hunk) (string, error) {
	lines := strings.Split(content, "\n")
	if s.left -= len(lines); s.left < 0 {
		return "", errComparisons
	}
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	var all []replacement
	at := 0
	for _, h := range hunks {
		r, next, err := h.locate(s, lines, at, path)
		if err != nil {
			return "", err
		}
		all, at = append(all, r), next
	}
	// Hunks are in order, except additions at the end.
	sort.SliceStable(all, func(i, j int) bool { return all[i].start < all[j].start })
	var out []string
	done := 0
	for _, r := range all {
		if r.start < done {
			return "", &MatchError{Path: path, Lines: lines[r.start : r.start+r.count], Overlap: true}
		}
		out = append(out, lines[done:r.start]...)
		out = append(out, r.new...)
		done = r.start + r.count
	}
	out = append(out, lines[done:]...)
	if len(out) == 0 {
		return "", nil
	}
	return strings.Join(out, "\n") + "\n", nil
}

// locate finds the hunk at or after line at. Next is where the next hunk may begin.
func (h hunk) locate(s *search, lines []string, at int, path string) (replacement, int, error) {
	if h.hasAfter {
		i := s.find(lines, []string{h.after}, at, false)
		if s.left < 0 {
			return replacement{}, 0, errComparisons
		}
		if i < 0 {
			return replacement{}, 0, &MatchError{Path: path, Lines: []string{h.after}}
		}
		at = i + 1
	}
	if len(h.old) == 0 {
		return replacement{start: len(lines), new: h.new}, at, nil
	}
	old, replaced := h.old, h.new
	i := s.find(lines, old, at, h.endOfFile)
	if i < 0 && old[len(old)-1] == "" {
		// An empty last line may mean the end of the file.
		old = old[:len(old)-1]
		if n := len(replaced); n > 0 && replaced[n-1] == "" {
			replaced = replaced[:n-1]
		}
		i = s.find(lines, old, at, h.endOfFile)
	}
	if s.left < 0 {
		return replacement{}, 0, errComparisons
	}
	if i < 0 {
		return replacement{}, 0, &MatchError{Path: path, Lines: h.old}
	}
	return replacement{start: i, count: len(old), new: replaced}.trim(lines), i + len(old), nil
}

// trim removes lines that do not change, so that hunks may share them.
func (r replacement) trim(lines []string) replacement {
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
	return strings.Map(func(r rune) rune {
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
	}, strings.TrimSpace(s))
}
