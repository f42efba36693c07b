package elicit

import "github.com/codexmcp/codexmcp/internal/plain"

// ShowCommand returns argv on one line, as questions show it. Words are quoted for a POSIX
// shell, or on Windows for PowerShell; a word is written $'…' with escapes when it has a character
// that a human would not see, or would see in the wrong place: controls, line breaks, direction marks, invisible
// letters, bytes that are not UTF-8. The escapes are \n, \r, \t, \xNN for ASCII controls and
// stray bytes, \u{N} for other characters, \\ and \'. The line is not cut.
func ShowCommand(argv []string) string {
	shown, _ := plain.Command(argv)
	return shown
}

// ShowText returns text of several lines. It escapes every character that a human would not
// see or that would move a terminal's cursor, except line breaks and tabs. It does not
// escape backslashes, so text may contain what looks like an escape.
func ShowText(text string) string { return plain.Text(text) }

// ShowCode returns text as a Markdown code span for the message of a Question, with every
// unseen character escaped. Text of more than 1,800 characters is cut in the middle: then
// whole is false, and Question.Once should be set.
func ShowCode(text string) (span string, whole bool) { return plain.Sample(text) }

// ShowName returns a name that another party chose, of an MCP server or of its tool, in quotes on
// one line.
func ShowName(name string) string { return plain.Name(name) }
