package show

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// Now is what a turn does at one moment. All that shows it has the same line of it, [Now.Line].
type Now struct {
	// Doing is what the turn does, on one line.
	Doing string
	// Since is when it began with that.
	Since time.Time
	// Output is what the running command has printed, nil if none runs.
	Output *Output
}

// maxNow is how wide a line of what happens now is at most, in characters.
const maxNow = 200

// Line returns the line at a time, such as
//
//	running go test ./... · 48s · 212 lines · "ok  pkg/x 3.1s"
//
// of at most so many characters, 0 for the usual number. The last line of output, which is a stranger's words, is
// the last part, in quotes.
func (n Now) Line(at time.Time, width int) string {
	if width <= 0 || width > maxNow {
		width = maxNow
	}
	more := ""
	if d := at.Sub(n.Since).Truncate(time.Second); d >= time.Second {
		more += " · " + Took(d)
	}
	last := ""
	switch o := n.Output; {
	case o == nil:
	case o.lines == 0 && more != "":
		more += " · no output seen"
	case o.lines > 0:
		more += fmt.Sprintf(" · %d lines", o.lines)
		if o.lines == 1 {
			more = strings.TrimSuffix(more, "s")
		}
		last = o.Last()
	}
	doing := elicit.OneLine(n.Doing, max(width-utf8.RuneCountInString(more)-1, 20))
	line := doing + more
	if room := width - utf8.RuneCountInString(line) - utf8.RuneCountInString(` · ""`); last != "" && room >= 10 {
		line += ` · "` + elicit.OneLine(last, room-1) + `"`
	}
	return line
}

// Took returns a duration in the words of [Now.Line]: 48s, 2m, 2m5s.
func Took(d time.Duration) string {
	text := d.Truncate(time.Second).String()
	if d >= time.Minute {
		text = strings.TrimSuffix(text, "0s")
		if d >= time.Hour {
			text = strings.TrimSuffix(text, "0m")
		}
	}
	return text
}

// maxLast is how much is kept and shown of a line of output: as many bytes or characters.
const maxLast = 80

// Output counts the lines that a command prints, and keeps the last one. A carriage return begins the line again, as on a
// terminal, so that a progress bar is one line with its last state. The zero value has no output.
type Output struct {
	lines int
	line  []byte // the one that is being printed
	last  []byte // the last whole one with something in it
	begun bool   // line has begun, perhaps again
	again bool   // it begins again with the next byte
}

// Write adds what was printed. It never fails.
func (o *Output) Write(text []byte) (int, error) {
	n := len(text)
	for len(text) > 0 {
		end := bytes.IndexAny(text, "\r\n")
		piece := text
		if end >= 0 {
			piece = text[:end]
		}
		if len(piece) > 0 {
			if o.again {
				o.line, o.again = o.line[:0], false
			}
			if !o.begun {
				o.begun = true
				o.lines++
			}
			o.line = append(o.line, piece[:min(len(piece), 4*maxLast-min(len(o.line), 4*maxLast))]...)
		}
		if end < 0 {
			break
		}
		if text[end] == '\r' {
			o.again = true
		} else {
			if len(bytes.TrimSpace(o.line)) > 0 {
				o.last = append(o.last[:0], o.line...)
			}
			o.line, o.begun, o.again = o.line[:0], false, false
		}
		text = text[end+1:]
	}
	return n, nil
}

// Last returns the last line with something in it, which may not be whole, as it may be shown.
func (o *Output) Last() string {
	line := o.line
	if len(bytes.TrimSpace(line)) == 0 {
		line = o.last
	}
	text := plain.Bare(strings.ToValidUTF8(string(line), "\uFFFD"))
	return strings.ReplaceAll(elicit.OneLine(strings.TrimSpace(text), maxLast-1), `"`, "'")
}

// Clone returns a copy, nil for nil.
func (o *Output) Clone() *Output {
	if o == nil {
		return nil
	}
	c := *o
	c.line, c.last = slices.Clone(o.line), slices.Clone(o.last)
	return &c
}

// Lines returns the number of lines.
func (o *Output) Lines() int { return o.lines }
