package terminal

import (
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

// running is a call that runs.
type running struct {
	title string
	now   show.Now
}

// does notes what the turn does from now on; "" is nothing.
func (p *printer) does(what string) { p.now = show.Now{Doing: what, Since: time.Now()} }

// present returns what the turn does: the call that began last, if any runs.
func (p *printer) present() show.Now {
	last := &running{now: p.now}
	for _, call := range p.calls {
		if last.title == "" || call.now.Since.After(last.now.Since) {
			last = call
		}
	}
	return last.now
}

// tick shows what the turn does, if it does something. It is called every second while nothing else is printed.
func (p *printer) tick() {
	if now := time.Now(); now.Sub(p.printed) >= time.Second {
		p.unanswered()
	}
	now := p.present()
	switch {
	case now.Doing == "":
	case p.rewrites:
		p.draw(now.Line(time.Now(), p.width()-1))
	case time.Since(p.printed) >= silence:
		p.open("now")
		p.line("· ", now.Line(time.Now(), 0))
	}
}

// draw writes the line of what happens now below what was printed. The next write erases it.
func (p *printer) draw(line string) {
	p.erase()
	if p.drawn = !p.mid; p.drawn {
		io.WriteString(p.w, cutting+plain(line)+breaking)
	}
}

// erase removes that line.
func (p *printer) erase() {
	if p.drawn {
		io.WriteString(p.w, cleared)
	}
	p.drawn = false
}

// wrap breaks the lines of a text at blanks, where they would have more characters than the terminal is wide. The first one
// begins at a column, the others are indented.
func (p *printer) wrap(text string, column, indent int) string {
	width := p.width()
	if width <= 0 {
		return text
	}
	var b strings.Builder
	for i, row := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
			column = indent
		}
		for j, word := range strings.Split(row, " ") {
			n := utf8.RuneCountInString(word)
			switch {
			case j > 0 && column+1+n > width && column > indent:
				b.WriteByte('\n')
				column = indent
			case j > 0:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += n
		}
	}
	return b.String()
}
