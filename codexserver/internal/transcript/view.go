package transcript

import (
	"bytes"
	"fmt"
	"strings"

	utf8text "github.com/codexmcp/codexmcp/internal/text"
)

const (
	maxShown = 6 << 10 // bytes that the page can show of a thread
	maxOpen  = 16      // commands that run at a time, of which the page shows what they print
	printed  = "│ "    // begins a line of an output
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
		if lines := o.last.Excerpt(); o.runs && lines != "" {
			text += entryOf(fmt.Sprintf("command %d has printed:", o.number), lines, maxEntry, printed)
		}
	}
	if last := utf8text.Tail(text, most); last != text {
		_, text, _ = strings.Cut(last, "\n")
	}
	return text
}
