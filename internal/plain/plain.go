// Package plain shows text of other parties, such as a model, a server or a file, so that it cannot pass for what
// surrounds it.
//
// A human decides by the text, often in a user interface that renders Markdown, sometimes in a terminal. Invisible
// characters, line breaks and the end of a code span are escaped. Everything shown can be turned back into the
// original, unless it was cut.
package plain

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/shellword"
)

// Hidden is added where a character is escaped that would be invisible.
const Hidden = "(contains hidden characters)"

// WholeIs begins the last line of a question that does not show all that is asked, which says where all of it is.
const WholeIs = "All of it is "

// blank reports whether r shows nothing by itself, although Unicode counts it as printable: fillers,
// joiners, and the blank of braille.
func blank(r rune) bool {
	return unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || r == '\u2800'
}

// unseen reports whether r has to be escaped when it comes after prev. A combining mark
// without a letter before it would combine with our own quotes.
func unseen(prev, r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	if !unicode.IsPrint(r) || blank(r) {
		return true
	}
	return unicode.Is(unicode.M, r) && !unicode.IsOneOf([]*unicode.RangeTable{unicode.L, unicode.M, unicode.N}, prev)
}

// sequences matches the control sequences and strings of ECMA-48, with which programs
// colour their output, set titles and make links.
var sequences = lazyregexp.Regexp{Text: "\x1b\\[[0-?]*[ -/]*[@-~]|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)|\x1b[ " +
	"-/][0-~]"}

// Bare returns the output of a program without its control sequences.
func Bare(text string) string {
	if !strings.Contains(text, "\x1b") {
		return text
	}
	return sequences.Get().ReplaceAllString(text, "")
}

// Text returns text of several lines. It escapes every character that a human would not
// see or that would move a terminal's cursor, except line breaks and tabs. It does not
// escape backslashes, so text may contain what looks like an escape.
func Text(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		parts := strings.Split(line, "\t")
		for j, part := range parts {
			parts[j], _, _ = Escape(part, "")
		}
		lines[i] = strings.Join(parts, "\t")
	}
	return strings.Join(lines, "\n")
}

// OneLine returns text on one line, for status lines and lists: line breaks and tabs become
// one space, and every other character that a human would not see is escaped. A text of more
// than limit characters is cut; 0 means no limit. It leaves the result of [Command] as it
// is, and drops the selector for coloured emoji.
func OneLine(text string, limit int) string {
	const coloured = '\ufe0f'
	var flat strings.Builder
	n, gap := 0, false
	for i := 0; i < len(text) && (limit == 0 || n <= limit); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '\n', r == '\r', r == '\t', r == ' ' && (gap || n == 0):
			gap = true
		case r == coloured:
		default:
			if gap && n > 0 {
				flat.WriteByte(' ')
				n++
			}
			gap = false
			flat.WriteString(text[i : i+size])
			n++
		}
		i += size
	}
	shown, _, _ := Escape(strings.TrimRight(flat.String(), " "), "")
	if limit == 0 || utf8.RuneCountInString(shown) <= limit {
		return shown
	}
	return string([]rune(shown)[:limit]) + "…"
}

// Sample returns text as a Markdown code span, with every
// unseen character escaped. Text of more than 1,800 characters is cut in the middle: then
// whole is false.
func Sample(text string) (span string, whole bool) {
	shown, _, hidden := Escape(text, "")
	cut := Clip(shown, CommandHead, CommandTail)
	span = Span(cut)
	if hidden {
		span += " " + Hidden
	}
	return span, cut == shown
}

// maxName is how many characters of a name are shown.
const maxName = 64

// maxMarks is how many combining marks in a row are shown. More of them, which no language
// needs, would cover the lines around.
const maxMarks = 8

// Escape returns s with every unseen character, and every combining mark after
// eight, as \n, \r, \t, \xNN or \u{N}, every byte that is not UTF-8 as \xNN, and
// a backslash before each character of special. It reports whether it escaped
// anything but special, and whether any of that was a hidden character rather
// than a plain line break or tab.
func Escape(s, special string) (shown string, escaped, hidden bool) {
	var b strings.Builder
	prev, marks := rune(-1), 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if marks++; r < utf8.RuneSelf || !unicode.Is(unicode.M, r) {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
			escaped = true
			r = -1
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte('\\')
			b.WriteByte(map[rune]byte{'\n': 'n', '\r': 'r', '\t': 't'}[r])
			escaped = true
		case unseen(prev, r), marks > maxMarks:
			if r < utf8.RuneSelf {
				fmt.Fprintf(&b, `\x%02x`, r)
			} else {
				fmt.Fprintf(&b, `\u{%x}`, r)
			}
			escaped, hidden = true, true
			r = -1
		default:
			if r < utf8.RuneSelf && strings.ContainsRune(special, r) {
				b.WriteByte('\\')
			}
			b.WriteString(s[i : i+n])
		}
		prev = r
		i += n
	}
	return b.String(), escaped, hidden
}

// Command returns argv on one line, and whether it has hidden characters. Words are quoted as shellword.Show does. A
// word with a character that a human would not see, or would see in the wrong place, is written $'…' with escapes, a
// form that Show never returns. The escapes are \n, \r, \t, \xNN for ASCII controls and stray bytes, \u{N} for other
// characters, \\ and \'. The line is not cut.
func Command(argv []string) (shown string, hidden bool) {
	if len(argv) == 0 {
		return "''", false
	}
	words := make([]string, len(argv))
	for i, word := range argv {
		var h bool
		words[i], h = Word(word)
		hidden = hidden || h
	}
	return strings.Join(words, " "), hidden
}

// Word is [Command] for one word.
func Word(word string) (shown string, hidden bool) {
	shown, escaped, hidden := Escape(word, `\'`)
	if !escaped {
		return shellword.Show(runtime.GOOS, word), false
	}
	return "$'" + shown + "'", hidden
}

// Path returns a path unquoted, as Codex always did. It quotes a path that could be
// mistaken for something else.
func Path(path string) (shown string, hidden bool) {
	_, escaped, _ := Escape(path, "")
	switch {
	case escaped, path == "", strings.Contains(path, "`"), strings.HasPrefix(path, "$'"),
		path[0] == '\'', path[0] == '"', path[0] == ' ', path[len(path)-1] == ' ':
		return Word(path)
	}
	return path, false
}

// Quote returns words of another party on one line in double quotes. They are in a code
// span if a Markdown renderer would otherwise format them.
func Quote(words string) string {
	shown, _, hidden := Escape(words, `\"`)
	shown = `"` + Clip(shown, QuoteHead, QuoteTail) + `"`
	if strings.ContainsAny(shown, "`*_~[]<>&|#\\") || strings.Contains(shown, "://") ||
		strings.Contains(shown, "www.") {
		shown = Code(shown)
	}
	if hidden {
		shown += " " + Hidden
	}
	return shown
}

// Name returns a name that another party chose, of an MCP server or of its tool, in quotes on
// one line.
func Name(name string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
	if len(name) <= maxName && strings.Trim(name, plain) == "" {
		return `"` + name + `"`
	}
	return Quote(OneLine(name, maxName))
}

// Line returns a line that the asking program wrote.
func Line(line string) string {
	shown, _, hidden := Escape(line, "")
	if hidden {
		shown += " " + Hidden
	}
	return shown
}

// Code wraps s in a Markdown code span whose fence is longer than any run of
// Backticks in s (CommonMark 0.31, section 6.1). s must not begin or end with a backtick:
// a space would have to separate it from the fence.
func Code(s string) string {
	return Fence(s) + s + Fence(s)
}

// Backticks returns the length of the longest run of backticks in s.
func Backticks(s string) (longest int) {
	run := 0
	for i := range len(s) {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// How much of each text is shown, in characters.
const (
	CommandHead, CommandTail = 1500, 300
	QuoteHead, QuoteTail     = 1000, 200
	PathHead, PathTail       = 300, 200
)

// Clip returns s if it has at most head+tail characters, otherwise its beginning and end
// with the number of characters between them.
func Clip(s string, head, tail int) string {
	n := utf8.RuneCountInString(s)
	if n <= head+tail {
		return s
	}
	runes := []rune(s)
	return string(runes[:head]) + "… (" + Thousands(n-head-tail) + " characters hidden) …" + string(runes[n-tail:])
}

// Counted writes how many things there are.
func Counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return Thousands(n) + " " + thing
}

// Thousands writes n with a comma between groups of three digits.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
