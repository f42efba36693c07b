package terminal

import (
	"io"
	"strings"
)

// These are for fuzz tests without a connection.
var (
	ShowOutput = showOutput
	ShowProse  = showProse
	Thousands  = thousands
	Took       = took
)

// JSONLine returns a line of the JSON form.
func JSONLine(w io.Writer, raw []byte) {
	(&client{console: &Console{Out: w}}).line(raw)
}

// ScreenLine returns what a terminal without colours shows of a line.
func ScreenLine(text string) string {
	var b strings.Builder
	(&screen{w: &b}).line("", plain, text)
	return b.String()
}
