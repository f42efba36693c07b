package terminal

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/internal/show"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

const (
	// silence is how long nothing is printed before a plain line says what happens.
	silence = 15 * time.Second
	// escape sequences of a terminal that can rewrite its last line: back to the line's beginning, which is cleared; what is
	// longer than the screen is wide is cut, or goes on in a further line.
	cleared, cutting, breaking = "\r\x1b[K", "\x1b[?7l", "\x1b[?7h"
	above                      = "\x1b[1A\x1b[K" // clears the line above, too
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
	now := time.Now()
	lines := p.lines(now)
	switch {
	case len(lines) == 0:
	case p.rewrites:
		p.erase() // the next write does so, too
		if p.mid {
			return
		}
		p.drawn = len(lines)
		io.WriteString(p.w, cutting+strings.Join(lines, "\n")+breaking)
	case now.Sub(p.printed) >= silence:
		p.open("now")
		for _, line := range lines {
			p.line("· ", line)
		}
	}
}

// lines returns what the turn does, or each attempt on a line of its own; nothing if that is nothing.
func (p *printer) lines(now time.Time) (lines []string) {
	width := 0
	if p.rewrites {
		width = p.width() - 1
	}
	if p.attempts == nil && p.now.Doing != "" {
		return []string{plain(p.now.Line(now, width))}
	}
	for i, a := range p.attempts {
		does := a.events.now
		if does.Doing == "" {
			does = show.Now{Doing: "ended", Since: now}
		}
		number := strconv.Itoa(i+1) + "  "
		lines = append(lines, number+plain(does.Line(now, max(width-len(number), 0))))
	}
	return lines
}

// erase removes the lines of what happens now, which stand below what was printed.
func (p *printer) erase() {
	if p.drawn > 0 {
		io.WriteString(p.w, cleared+strings.Repeat(above, p.drawn-1))
	}
	p.drawn = 0
}

// attempt is one of several attempts: its conversation, and a printer that follows its events and prints nothing.
type attempt struct {
	thread string
	events printer
}

// attempt follows an event of one of several attempts, and prints how it ends.
func (p *printer) attempt(thread string, m protocol.EventMsg) {
	if thread == "" { // before it has begun
		return
	}
	i := slices.IndexFunc(p.attempts, func(a *attempt) bool { return a.thread == thread })
	if i < 0 {
		i = len(p.attempts)
		p.attempts = append(p.attempts, &attempt{thread, printer{
			w: io.Discard, asked: map[string]bool{}, titles: map[string]string{}, width: func() int { return 0 },
		}})
	}
	events := &p.attempts[i].events
	events.event(m)
	words := ""
	switch m := m.(type) {
	case protocol.TaskComplete:
		words = "has ended"
	case protocol.TurnAborted:
		words = "was stopped"
	case protocol.Error:
		words = "has failed: " + trimmed(m.Message)
	case protocol.BackgroundEvent:
		words = trimmed(m.Message)
	}
	if words != "" {
		p.open("attempts")
		p.row("", fmt.Sprintf("%d  %s", i+1, words))
	}
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
