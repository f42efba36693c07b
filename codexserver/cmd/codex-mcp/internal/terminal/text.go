package terminal

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/codexmcp/codexmcp/elicit"
)

// sequences matches the control sequences and strings of ECMA-48, with which programs
// colour their output, set titles and make links.
var sequences = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)|\x1b[ -/][0-~]")
})

// showOutput returns a line of a command's output that is safe to show.
func showOutput(line string) string {
	return elicit.ShowText(sequences().ReplaceAllString(line, ""))
}

// showProse returns a text of the model that is safe to show. It drops the selector for
// coloured emoji rather than escaping it.
func showProse(text string) string {
	return elicit.ShowText(strings.ReplaceAll(text, "\ufe0f", ""))
}

// Prose returns a text of a model or a command that is safe to show.
func Prose(text string) string { return showProse(sequences().ReplaceAllString(text, "")) }

// Row is like Prose, but returns one line.
func Row(text string) string { return elicit.OneLine(sequences().ReplaceAllString(text, ""), 0) }

// showWord returns a path or a name as one word on one line.
func showWord(word string) string { return elicit.ShowCommand([]string{word}) }

// tabStop is the distance of tab stops.
const tabStop = 8

// expand replaces tabs by spaces.
func expand(line string) string {
	if !strings.Contains(line, "\t") {
		return line
	}
	var b strings.Builder
	col := 0
	for _, r := range line {
		if r == '\t' {
			n := tabStop - col%tabStop
			b.WriteString(strings.Repeat(" ", n))
			col += n
			continue
		}
		b.WriteRune(r)
		col += cells(r)
	}
	return b.String()
}

// wide has the characters that take two cells: those of Unicode's East Asian Width W and F,
// and neighbours of them where that shortens the table. A character that is wrongly in the
// table only breaks a line too early.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x231a, Hi: 0x231b, Stride: 1}, {Lo: 0x23e9, Hi: 0x23f3, Stride: 1},
		{Lo: 0x25fd, Hi: 0x25fe, Stride: 1}, {Lo: 0x2614, Hi: 0x2615, Stride: 1}, {Lo: 0x2648, Hi: 0x2653, Stride: 1},
		{Lo: 0x267f, Hi: 0x2693, Stride: 20}, {Lo: 0x26a1, Hi: 0x26ab, Stride: 1}, {Lo: 0x26bd, Hi: 0x26be, Stride: 1},
		{Lo: 0x26c4, Hi: 0x26ce, Stride: 1}, {Lo: 0x26d4, Hi: 0x26ea, Stride: 22}, {Lo: 0x26f2, Hi: 0x26fd, Stride: 1},
		{Lo: 0x2705, Hi: 0x270b, Stride: 1}, {Lo: 0x2728, Hi: 0x2728, Stride: 1}, {Lo: 0x274c, Hi: 0x274e, Stride: 2},
		{Lo: 0x2753, Hi: 0x2757, Stride: 1}, {Lo: 0x2795, Hi: 0x2797, Stride: 1}, {Lo: 0x27b0, Hi: 0x27bf, Stride: 15},
		{Lo: 0x2b1b, Hi: 0x2b1c, Stride: 1}, {Lo: 0x2b50, Hi: 0x2b55, Stride: 5},
		{Lo: 0x2e80, Hi: 0x303e, Stride: 1}, {Lo: 0x3041, Hi: 0xa4cf, Stride: 1}, {Lo: 0xa960, Hi: 0xa97c, Stride: 1},
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1}, {Lo: 0xf900, Hi: 0xfaff, Stride: 1}, {Lo: 0xfe10, Hi: 0xfe6f, Stride: 1},
		{Lo: 0xff00, Hi: 0xff60, Stride: 1}, {Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x16fe0, Hi: 0x18d08, Stride: 1}, {Lo: 0x1aff0, Hi: 0x1b2fb, Stride: 1}, {Lo: 0x1f004, Hi: 0x1f0cf, Stride: 203},
		{Lo: 0x1f18e, Hi: 0x1f265, Stride: 1}, {Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, {Lo: 0x1f680, Hi: 0x1faff, Stride: 1},
		{Lo: 0x20000, Hi: 0x3fffd, Stride: 1},
	},
}

// cells returns how many cells of a terminal r takes, precisely enough to break lines.
func cells(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.Is(unicode.M, r):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// width returns how many cells s takes, without our own colours.
func width(s string) int {
	n, colour := 0, false
	for _, r := range s {
		switch {
		case r == 0x1b:
			colour = true
		case !colour:
			n += cells(r)
		case r == 'm':
			colour = false
		}
	}
	return n
}

// fold breaks a line without line breaks into rows of at most limit cells; with words it
// breaks at spaces. A limit of 0 means no limit.
func fold(line string, limit int, words bool) []string {
	line = expand(line)
	if limit <= 0 || width(line) <= limit {
		return []string{line}
	}
	var rows []string
	for line != "" {
		end, space, n := len(line), -1, 0
		for i, r := range line {
			if n += cells(r); n > limit && i > 0 {
				end = i
				break
			}
			if r == ' ' && i > 0 {
				space = i
			}
		}
		if words && end < len(line) && line[end] != ' ' && space > 0 && strings.TrimSpace(line[:space]) != "" {
			end = space
		}
		rows = append(rows, line[:end])
		if line = line[end:]; words {
			line = strings.TrimPrefix(line, " ")
		}
	}
	return rows
}

// cut shortens a line to about limit characters and adds how many it left out.
func cut(line string, limit int) string {
	runes := []rune(line)
	if len(runes) <= limit+40 { // the remark would be as long as the rest
		return line
	}
	return string(runes[:limit]) + fmt.Sprintf("… (%s more characters)", thousands(int64(len(runes)-limit)))
}

// lines splits text at its line breaks. A line break at the end does not begin a line.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// thousands formats n with a comma between groups of three digits.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// count formats a number of things.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return thousands(int64(n)) + " " + thing
}

// took formats a duration.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}
