package terminal

import (
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/elicit"
	plaintext "github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/program"
)

// Prose returns a text of a model or a command that is safe to show: without control sequences and the
// selector for coloured emoji, and with escapes for what a person would not see.
func Prose(text string) string {
	text = strings.ReplaceAll(text, "\ufe0f", "")
	return elicit.ShowText(plaintext.Bare(text))
}

// Row is like Prose, but returns one line.
func Row(text string) string { return plaintext.OneLine(plaintext.Bare(text), 0) }

// Line returns JSON as one line without the mark of a question and what a terminal could interpret.
func Line(raw []byte) string { return strings.ReplaceAll(program.Line(raw), mark, `\u25c6`) }

// mark begins a question, and stands nowhere else.
const mark = "◆"

// plain returns text that is safe to show as it is printed: without the mark of a question, and with spaces for tabs, after
// which a terminal would write over its last cell.
func plain(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, mark, `\u{25c6}`), "\t", "    ")
}

// brief is Row with at most 600 characters.
func brief(text string) string { return plaintext.OneLine(plaintext.Bare(text), 600) }

// word returns a path or a name as one word on one line.
func word(text string) string { return elicit.ShowCommand([]string{text}) }

// written returns a command as a person would write it, on one line.
func written(argv []string) string { return elicit.ShowCommand(decide.Written(argv)) }
