package terminal

import (
	"io"
	"strings"
)

// What the fuzz tests reach without a connection.
var (
	ShowOutput = showOutput
	Fold       = fold
	Width      = width
	Thousands  = thousands
	Took       = took
)

// Flow is text that arrived in pieces on a screen of that width.
func Flow(columns int, pieces ...string) string {
	var b strings.Builder
	f := &flow{s: &screen{w: &b, width: func() int { return columns }}}
	for _, piece := range pieces {
		f.add(piece)
	}
	f.end()
	return b.String()
}

// Output is the lines of a command's output that arrived in chunks.
func Output(chunks ...[]byte) []string {
	c := &command{all: true}
	for _, chunk := range chunks {
		c.write(chunk)
	}
	c.flush()
	return c.head
}

// JSONLine is a line of the JSON form.
func JSONLine(w io.Writer, raw []byte) {
	(&client{console: &Console{Out: w}}).line(raw)
}
