package main

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// width returns the width of the terminal that w writes to, or 0 if w is no terminal.
func width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	const usual = 80
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
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
