package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/codexmcp/codexmcp/codexserver/internal/show"
)

const (
	// silence is how long nothing is printed before a plain line says what happens.
	silence = 15 * time.Second
	// escape sequences of a terminal that can rewrite its last line: back to the line's beginning, which is cleared; without
	// and with a further line for what is longer than the screen is wide.
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
		p.draw(now.Line(time.Now(), max(p.width()-1, 1)))
	case time.Since(p.printed) >= silence:
		p.open("now")
		p.line("· ", now.Line(time.Now(), 0))
	}
}

// draw writes the line of what happens now below what was printed. The next write erases it.
func (p *printer) draw(line string) {
	p.erase()
	switch {
	case !p.mid:
	case p.column == 0 || p.column >= p.width():
		return // where the cursor was is not known
	default:
		p.below = p.column
		io.WriteString(p.w, "\n")
	}
	p.drawn = true
	for cells(line) >= p.width() && line != "" { // of what is twice as wide
		runes := []rune(line)
		line = string(runes[:len(runes)-1])
	}
	io.WriteString(p.w, cutting+plain(line)+breaking)
}

// erase removes that line, and puts the cursor where it was.
func (p *printer) erase() {
	if !p.drawn {
		return
	}
	io.WriteString(p.w, cleared)
	if p.below > 0 {
		fmt.Fprintf(p.w, "\x1b[A\x1b[%dG", p.below+1)
	}
	p.drawn, p.below = false, 0
}

// wrap breaks the lines of a text at blanks, where they would be wider than the terminal. The first one begins at a column,
// the others are indented.
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
		for row != "" {
			word := strings.TrimLeft(row, " ")
			blanks := row[:len(row)-len(word)]
			word, row, _ = cutBefore(word, " ")
			if column+len(blanks)+cells(word) > width && column > indent && blanks != "" {
				b.WriteByte('\n')
				blanks, column = "", indent
			}
			b.WriteString(blanks + word)
			column += len(blanks) + cells(word)
		}
	}
	return b.String()
}

// cutBefore is [strings.Cut] with the separator in the second part.
func cutBefore(text, sep string) (before, after string, found bool) {
	if i := strings.Index(text, sep); i >= 0 {
		return text[:i], text[i:], true
	}
	return text, "", false
}

// twice are the ranges of characters that are twice as wide on a terminal, about.
var twice = [][2]rune{{0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}}

// cells returns how wide a text is on a terminal.
func cells(text string) (n int) {
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Mn, r):
		case slices.ContainsFunc(twice, func(of [2]rune) bool { return of[0] <= r && r <= of[1] }):
			n += 2
		default:
			n++
		}
	}
	return n
}
