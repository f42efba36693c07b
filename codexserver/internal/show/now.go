// Package show has the line of what a turn does now, and the output of its commands in short.
package show

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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

const (
	// maxNow is how wide a line of what happens now is at most, in characters.
	maxNow = 200
	// maxLast is how much of a line of output is shown, in characters, and maxTail how much of an output is kept, in bytes.
	maxLast, maxTail = 80, 6 << 10
)

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
	more, last := "", ""
	if d := at.Sub(n.Since).Truncate(time.Second); d >= time.Second {
		more = " · " + strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(d.String())
	}
	if o := n.Output; o != nil && o.Lines() > 0 {
		more, last = more+" · "+plain.Counted(o.Lines(), "line"), o.Last()
	} else if o != nil && more != "" {
		more += " · no output seen"
	}
	doing, count := plain.OneLine(n.Doing, width), utf8.RuneCountInString
	// of the last line, beside a part of a long command
	room := width - min(count(doing), width/3) - count(more) - count(` · ""`) - 1
	if last != "" && room >= 9 {
		more += ` · "` + plain.OneLine(last, room) + `"`
	}
	return plain.OneLine(doing, max(width-count(more)-1, 20)) + more
}

// Output counts the lines that a command prints, and keeps the end of what it prints. The zero value has no output.
type Output struct {
	ended int // lines
	tail  []byte
}

// Write adds what was printed. It never fails.
func (o *Output) Write(text []byte) (int, error) {
	o.ended += bytes.Count(text, []byte("\n"))
	if o.tail = append(o.tail, text[max(0, len(text)-maxTail):]...); len(o.tail) > 2*maxTail {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-maxTail:]...)
	}
	return len(text), nil
}

// Lines returns the number of lines, with one that has not ended.
func (o *Output) Lines() int {
	if len(o.tail) == 0 || bytes.HasSuffix(o.tail, []byte("\n")) {
		return o.ended
	}
	return o.ended + 1
}

// Last returns the last line with something in it, which may not be whole, as it may be shown. A carriage return begins a
// line, too, so that a progress bar shows its last state.
func (o *Output) Last() string {
	lines := o.Excerpt()
	return strings.ReplaceAll(plain.OneLine(lines[1+strings.LastIndexByte(lines, '\n'):], maxLast-1), `"`, "'")
}

// Excerpt is [Excerpt] of an output whose command runs.
func (o *Output) Excerpt() string {
	return Excerpt(string(o.tail[max(0, len(o.tail)-maxTail):]), false)
}

// Clone returns a copy, nil for nil.
func (o *Output) Clone() *Output {
	if o == nil {
		return nil
	}
	return &Output{o.ended, slices.Clone(o.tail)}
}
