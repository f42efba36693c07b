package terminal_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/google/go-cmp/cmp"
)

func TestWrap(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"fits":        {"one two", []string{"one two"}},
		"spaces":      {"one two   three", []string{"one two   ", "three"}},
		"long word":   {"a https://example.com/ b", []string{"a ", "https://example.com/ ", "b"}},
		"wide":        {"\u65e5\u672c\u8a9e\u306e\u6587\u3067\u3059", []string{"\u65e5\u672c\u8a9e\u306e\u6587", "\u3067\u3059"}},
		"punctuation": {"\u65e5\u672c\u8a9e\u306e\u6587\u3002", []string{"\u65e5\u672c\u8a9e\u306e", "\u6587\u3002"}},
		"nothing":     {"", []string{""}},
	} {
		if diff := cmp.Diff(tt.want, terminal.Fit(terminal.Breakable(tt.text), "", 0, 11)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestItems shows lists in 24 cells, in one piece and in small ones.
func TestItems(t *testing.T) {
	for text, want := range map[string]string{
		"- one two three four five six":                   "- one two three four\n  five six\n",
		"* one two three four five\nsix seven eight nine": "* one two three four\n  five\nsix seven eight nine\n",
		"12. one two three four five":                     "12. one two three four\n    five\n",
		"1) one two three four five six":                  "1) one two three four\n   five six\n",
		"a\n  - one two three four five":                  "a\n  - one two three four\n    five\n",
		"-one two three four five six":                    "-one two three four\nfive six\n",
		"12 one two three four five":                      "12 one two three four\nfive\n",
		"1.5 one two three four five":                     "1.5 one two three four\nfive\n",
	} {
		for n := range 9 {
			pieces := []string{text}
			if n > 0 {
				pieces = append(pieces, split(text, n-1)...)
			}
			got := terminal.Message(24, pieces...)
			lines := strings.Split(got, "\n")
			for i := range lines {
				lines[i] = strings.TrimRight(lines[i], " ")
			}
			if got := strings.Join(lines, "\n"); got != want {
				t.Errorf("in pieces of %d: %q, want %q", n, got, want)
			}
		}
	}
}

// FuzzWrap breaks any line. The rows together must be the line, and only a word that does not fit
// into a row may be wider.
func FuzzWrap(f *testing.F) {
	f.Add("rm  -rf   / \u65e5\u672c e\u0301 \U0001f44d\U0001f3fd", 3, 7)
	f.Fuzz(func(t *testing.T, line string, col, width int) {
		line = terminal.ShowProse(strings.ToValidUTF8(line, "?"))
		col, width = col&0xff, 20+width&0xff
		words := terminal.Breakable(line)
		rows := terminal.Fit(words, "", col, width)
		if got := strings.Join(rows, ""); got != line {
			t.Errorf("%q became %q", line, rows)
		}
		for i, row := range rows {
			row = strings.TrimRight(row, " ")
			used := displaywidth.String(row)
			if i == 0 && row != "" {
				used += col
			}
			alone := slices.ContainsFunc(words, func(word string) bool { return strings.TrimRight(word, " ") == row })
			if used > width && !alone {
				t.Errorf("%q has %d cells of %d", row, used, width)
			}
		}
	})
}

// FuzzMessage shows a message that arrives in pieces. It must show the same as in one piece, but
// for the line breaks.
func FuzzMessage(f *testing.F) {
	f.Add("one \u25c6 two\r\n\r\n three \x1b[31m e\u0301\u0301 \u65e5\u3099\u672c\u202e\tx\n\n", 3)
	f.Fuzz(func(t *testing.T, text string, n int) {
		text = strings.ToValidUTF8(text, "?")
		pieces := append([]string{text}, split(text, n)...)
		got, want := terminal.Message(30, pieces...), terminal.Message(30, text)
		flat := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if flat(got) != flat(want) {
			t.Errorf("%q is shown as\n%q, want\n%q", pieces[1:], got, want)
		}
		for line := range strings.Lines(got) {
			harmless(t, line)
		}
	})
}

// FuzzOutput takes the output of a command in pieces. It must be the same as in one piece.
func FuzzOutput(f *testing.F) {
	f.Add("one\r\ntwo\rthr\u25c6ee\x1b[31m\n\n\xff\r\r\nend", 2)
	f.Fuzz(func(t *testing.T, text string, n int) {
		if diff := cmp.Diff(terminal.Output(text), terminal.Output(split(text, n)...)); diff != "" {
			t.Errorf("%q (-whole +pieces):\n%s", text, diff)
		}
		for _, line := range terminal.Output(text) {
			harmless(t, terminal.ScreenLine(line))
		}
	})
}

// split splits a text of valid UTF-8 between characters, and other text anywhere, into pieces of
// n&7 bytes or a little more.
func split(text string, n int) []string {
	var pieces []string
	for n = n&7 + 1; len(text) > n; {
		end := n
		for utf8.ValidString(text) && end < len(text) && !utf8.RuneStart(text[end]) {
			end++
		}
		pieces, text = append(pieces, text[:end]), text[end:]
	}
	return append(pieces, text)
}
