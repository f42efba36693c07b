package transcript

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/show"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	utf8text "github.com/codexmcp/codexmcp/internal/text"
)

const (
	maxCommands = 1000    // how many commands' outputs are kept
	maxOutput   = 2 << 20 // bytes of one command, half from the beginning and half from the end
)

// output is the output of a command.
type output struct {
	number   int
	runs     bool
	unended  bool        // the turn ended before the command
	last     show.Output // what it has printed last, while it runs
	begins   []byte      // what a command that runs has printed first, at most maxOutput bytes with those of all others
	at, size int64       // where the output of another is in its ring
	omitted  int64       // bytes that were left out
}

// Begins writes the begin of a command, and returns its number in the thread.
func (l *Log) Begins(m protocol.ExecCommandBegin) (number int) {
	l.write(func() {
		l.commands++
		number = l.commands
		o := &output{number: number, runs: true}
		l.list, l.open[m.CallID] = append(l.list, o), o
		if len(l.list) > maxCommands {
			l.list = slices.Delete(l.list, 0, 1)
		}
		l.keep(fmt.Sprintf("command %d: %s", number, commandLine(m.Command)), "in "+Line(m.Cwd))
		l.show(fmt.Sprintf("command %d: %s", number, commandLine(decide.Written(m.Command))), "in "+Line(m.Cwd))
	})
	return number
}

// Prints keeps a piece of an output, until the command has ended.
func (l *Log) Prints(m protocol.ExecCommandOutputDelta) {
	l.write(func() {
		o, room := l.open[m.CallID], maxOutput
		if o == nil {
			return
		}
		if len(l.open) <= maxOpen {
			o.last.Write(m.Chunk)
		}
		for _, other := range l.open {
			room -= len(other.begins)
		}
		n := min(len(m.Chunk), room)
		o.begins, o.omitted = append(o.begins, m.Chunk[:n]...), o.omitted+int64(len(m.Chunk)-n)
	})
}

// Ends writes the end of a command, and its output, in place of the pieces if the event has it.
func (l *Log) Ends(m protocol.ExecCommandEnd) {
	l.write(func() {
		o := l.open[m.CallID]
		delete(l.open, m.CallID)
		if o == nil {
			return
		}
		all := cmp.Or(m.AggregatedOutput, m.Stdout+m.Stderr)
		if all != "" || len(o.begins) == 0 {
			o.omitted = m.Omitted
		}
		all = cmp.Or(all, string(o.begins))
		l.ended(o, all)
		l.entry(fmt.Sprintf("command %d ended: %s after %s, %d bytes of output",
			o.number, cmp.Or(m.Status, fmt.Sprint("exit code ", m.ExitCode)),
			time.Duration(m.Duration).Round(time.Millisecond), o.size+o.omitted), "")
		l.shows(entryOf("", show.Excerpt(all, true), maxEntry, printed)[1:])
	})
}

// ended writes the output of a command that runs no more.
func (l *Log) ended(o *output, all string) {
	all, left := middle(valid(all), maxOutput)
	o.runs, o.begins, o.last, o.omitted = false, nil, show.Output{}, o.omitted+int64(left)
	o.at, o.size = l.outputs.end, int64(len(all))
	l.outputs.write(all)
}

// printed returns a part of an output.
func (l *Log) printed(o *output, offset int64, most int) (Page, error) {
	if !o.runs {
		return l.outputs.page(o.at, o.size, offset, most)
	}
	// which may be half a rune that continues
	now := ring{tail: []byte(strings.TrimSuffix(valid(string(o.begins)), "\uFFFD"))}
	now.end = int64(len(now.tail))
	return now.page(0, now.end, offset, most)
}

// middle shortens a text to about most bytes by leaving out its middle, with a note there.
// It returns how many bytes are left out.
func middle(s string, most int) (string, int) {
	if len(s) <= most {
		return s, 0
	}
	head, tail := utf8text.Head(s, most/2), utf8text.Tail(s, most/2)
	left := len(s) - len(head) - len(tail)
	return fmt.Sprintf("%s\n[... %d bytes are left out here ...]\n%s", head, left, tail), left
}

// valid replaces invalid UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
