package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"golang.org/x/term"
)

// screen prints rows: a name, and texts below each other. On a terminal a text is broken between its
// words. Programs that read the rows get each in one line.
type screen struct {
	w     io.Writer
	width int // of the terminal; 0 for programs
}

// row prints the texts that are not empty, the first with the name.
func (s screen) row(name string, texts ...string) {
	const column = 15 // where the text begins
	for _, text := range texts {
		text = terminal.Row(text)
		rows := []string{text}
		if s.width > 0 {
			rows = wrap(text, s.width-1-column)
		}
		for _, part := range rows {
			if text != "" {
				fmt.Fprintf(s.w, "%-*s%s\n", column, name, part)
				name = ""
			}
		}
	}
}

// width returns the width of the terminal that w writes to, or 0 if w is no terminal.
func width(w io.Writer) int {
	const usual = 80
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err == nil && width <= 0 {
		return usual
	}
	return width
}

// wrap breaks a line between its words into rows of at most width characters; a longer word is a row of its
// own.
func wrap(line string, width int) []string {
	var rows []string
	last := ""
	for word := range strings.FieldsSeq(line) {
		switch {
		case last == "":
			last = word
		case utf8.RuneCountInString(last+" "+word) <= width:
			last += " " + word
		default:
			rows, last = append(rows, last), word
		}
	}
	return append(rows, last)
}
