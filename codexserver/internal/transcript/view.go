package transcript

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
	utf8text "github.com/codexmcp/codexmcp/internal/text"
)

const (
	maxShown  = 6 << 10 // bytes that the page can show of a thread
	maxLines  = 12      // of an output, with the one that says how many are left out
	headLines = 4       // of them, from the beginning
	maxWidth  = 160     // characters of a line of an output
	maxRead   = 4 << 10 // bytes that are looked at for it
	maxOpen   = 16      // commands that run at a time, of which the page shows what they print
	printed   = "│ "    // begins a line of an output
)

// show writes an entry that only the page shows.
func (l *Log) show(heading, body string) { l.shows(entryOf(heading, body, maxShown/2, "  ")) }

func (l *Log) shows(text string) {
	if l.shown = append(l.shown, text...); len(l.shown) > 2*maxShown {
		_, last, _ := bytes.Cut(l.shown[len(l.shown)-maxShown:], []byte("\n")) // only whole lines
		l.shown = append(l.shown[:0], last...)
	}
}

// Last returns the last whole lines of what a person sees of the thread, at most most bytes: the transcript without
// the questions, which stand above it, and with the outputs of commands in short. As there, only the server writes
// lines that begin with something else than a space or the sign of an output.
func (l *Log) Last(most int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := string(l.shown)
	for _, o := range l.list {
		if lines := excerpt(string(o.last), 0); o.runs && lines != "" {
			text += entryOf(fmt.Sprintf("command %d has printed:", o.number), lines, maxEntry, printed)
		}
	}
	if last := utf8text.Tail(text, most); last != text {
		_, text, _ = strings.Cut(last, "\n")
	}
	return text
}

// prints keeps the last of what a command that runs has printed.
func (o *output) prints(chunk []byte) {
	if o.last = append(o.last, chunk...); len(o.last) > 2*maxShown {
		o.last = append(o.last[:0], o.last[len(o.last)-maxShown:]...)
	}
}

// excerpt returns some of the first lines of an output and the last ones, as they may be shown. A carriage return
// begins a line again, as on a terminal.
func excerpt(text string, head int) string {
	lines := strings.SplitN(strings.TrimRight(text, "\r\n"), "\n", head+1)
	if len(lines) > head {
		rest, more := lines[head], true
		lines = lines[:head:head]
		for n := maxLines - head; more && n > 0; n-- {
			at := strings.LastIndexByte(rest, '\n')
			lines = slices.Insert(lines, head, rest[at+1:])
			rest, more = rest[:max(at, 0)], at >= 0
		}
		if more && head > 0 {
			lines[head] = fmt.Sprintf("… %d lines left out …", 2+strings.Count(rest, "\n"))
		}
	}
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		line = line[strings.LastIndexByte(line, '\r')+1:]
		line = elicit.ShowText(plain.Bare(valid(line[:min(len(line), maxRead)])))
		if utf8.RuneCountInString(line) > maxWidth {
			line = string([]rune(line)[:maxWidth-1]) + "…"
		}
		lines[i] = strings.TrimRight(line, " \t")
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
