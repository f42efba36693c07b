package terminal

import (
	"io"
	"strings"
)

// These are for fuzz tests without a connection.
var (
	ShowOutput = showOutput
	Fold       = fold
	Width      = width
	Thousands  = thousands
	Took       = took
)

// Flow returns what a screen of a width shows of a text that arrived in pieces.
func Flow(columns int, pieces ...string) string {
	var b strings.Builder
	f := &flow{s: &screen{w: &b, width: func() int { return columns }}}
	for _, piece := range pieces {
		f.add(piece)
	}
	f.end()
	return b.String()
}

// Output returns the lines that are shown of a command's output in chunks.
func Output(chunks ...[]byte) []string {
	c := &command{all: true}
	for _, chunk := range chunks {
		c.write(chunk)
	}
	c.flush()
	return c.head
}

// JSONLine returns a line of the JSON form.
func JSONLine(w io.Writer, raw []byte) {
	(&client{console: &Console{Out: w}}).line(raw)
}
