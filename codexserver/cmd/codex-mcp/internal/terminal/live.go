package terminal

import (
	"bytes"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/internal/show"
)

const (
	// silence is how long nothing is printed before a plain line says what happens.
	silence = 15 * time.Second
	// escape sequences of a terminal that can rewrite its last line: back to the line's beginning, which is cleared; what is
	// longer than the screen is wide is cut, or goes on in a further line.
	cleared, cutting, breaking = "\r\x1b[K", "\x1b[?7l", "\x1b[?7h"
)

// does notes what the turn does from now on; "" is nothing. A command that it runs has a call.
func (p *printer) does(what, call string) {
	p.now, p.runs = show.Now{Doing: what, Since: time.Now()}, call
	if call != "" {
		p.now.Output = &show.Output{}
	}
}

// tick shows what the turn does, if it does something. It is called every second while nothing else is printed.
func (p *printer) tick() {
	switch now := time.Now(); {
	case p.now.Doing == "":
	case p.rewrites:
		p.erase() // the next write does so, too
		if p.drawn = !p.mid; p.drawn {
			io.WriteString(p.w, cutting+plain(p.now.Line(now, p.width()-1))+breaking)
		}
	case now.Sub(p.printed) >= silence:
		p.open("now")
		p.line("· ", p.now.Line(now, 0))
	}
}

// erase removes the line of what happens now, which stands below what was printed.
func (p *printer) erase() {
	if p.drawn {
		io.WriteString(p.w, cleared)
	}
	p.drawn = false
}

// wrap breaks the lines of a text at blanks, where they would have more characters than the terminal is wide when they are
// indented.
func (p *printer) wrap(text string, indent int) string { return wrap(text, p.width(), indent) }

// Wrap breaks the paragraphs of a text at blanks, where their lines would have more characters than the width, and joins the
// lines that they have. Lines that begin with a blank stay as they are.
func Wrap(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if said := b.String(); said != "" && line != "\n" && line[0] != ' ' && !strings.HasSuffix(said, "\n\n") {
			b.Reset()
			b.WriteString(strings.TrimSuffix(said, "\n") + " ")
		}
		b.WriteString(line)
	}
	return wrap(b.String(), width, 0)
}

// wrap breaks the lines of a text at blanks for a width, 0 for none.
func wrap(text string, width, indent int) string {
	var b []byte
	for row := range strings.SplitAfterSeq(text, "\n") {
		column := indent
		for word := range strings.SplitAfterSeq(row, " ") {
			begun, n := bytes.TrimRight(b, " "), utf8.RuneCountInString(strings.TrimRight(word, " \n"))
			if width > 0 && column+n > width && len(begun) > 0 && begun[len(begun)-1] != '\n' {
				b, column = append(begun, '\n'), indent
			}
			b, column = append(b, word...), column+utf8.RuneCountInString(word)
		}
	}
	return string(b)
}
