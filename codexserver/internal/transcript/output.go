package transcript

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	utf8text "github.com/codexmcp/codexmcp/internal/text"
)

const (
	maxCommands = 1000    // how many commands' outputs are kept
	maxOutput   = 2 << 20 // bytes of one command, half from the beginning and half from the end
	maxSections = 1 << 14 // of outputs, which are many if commands print by turns
)

// output is the output of a command.
type output struct {
	number  int
	size    int64 // of what was printed
	runs    bool
	omitted int64                            // bytes that were left out
	unended bool                             // the turn ended before the command
	rest    map[protocol.OutputStream][]byte // the beginning of an incomplete rune
}

// begin writes the begin of a command, and returns its number in the thread.
func (l *Log) begin(m protocol.ExecCommandBegin) int {
	l.commands++
	if l.open == nil {
		l.open = map[string]*output{}
	}
	o := &output{number: l.commands, runs: true, rest: map[protocol.OutputStream][]byte{}}
	l.list, l.open[m.CallID] = append(l.list, o), o
	if len(l.list) > maxCommands {
		l.list = slices.Delete(l.list, 0, 1)
	}
	l.entry(fmt.Sprintf("command %d: %s", o.number, commandLine(m.Command)), "in "+showLine(m.Cwd))
	return o.number
}

// print writes a piece of an output. The end of the command replaces the pieces by the whole output.
func (l *Log) print(m protocol.ExecCommandOutputDelta) {
	o := l.open[m.CallID]
	if o == nil || !l.kept(o) {
		return
	}
	b := append(o.rest[m.Stream], m.Chunk...)
	whole := len(b)
	for k := 1; k < utf8.UTFMax && k <= len(b); k++ { // a rune may continue in the next piece
		if c := b[len(b)-k]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-k:]) {
				whole -= k
			}
			break
		}
	}
	o.rest[m.Stream] = slices.Clone(b[whole:])
	room := max(0, maxOutput-int(o.size))
	kept := utf8text.Head(valid(string(b[:whole])), room)
	o.omitted += int64(max(0, whole-len(kept)))
	l.append(o, kept)
}

// end writes the end of a command.
func (l *Log) end(m protocol.ExecCommandEnd) {
	o := l.open[m.CallID]
	delete(l.open, m.CallID)
	if o == nil {
		return
	}
	o.runs, o.rest = false, nil
	if all := cmp.Or(m.AggregatedOutput, m.Stdout+m.Stderr); all != "" || o.size == 0 {
		var left int
		all, left = middle(valid(all), maxOutput)
		o.omitted = m.Omitted + int64(left)
		if p, _ := l.printed(o, 0, len(all)); (p.Text != all || p.Total != int64(len(all))) && l.kept(o) {
			l.sections = slices.DeleteFunc(l.sections, func(s section) bool { return s.command == o.number })
			o.size = 0
			l.append(o, all)
		}
	}
	l.entry(fmt.Sprintf("command %d ended: exit code %d after %s, %d bytes of output",
		o.number, m.ExitCode, time.Duration(m.Duration).Round(time.Millisecond), o.size+o.omitted), "")
}

// append appends valid UTF-8 to an output.
func (l *Log) append(o *output, s string) {
	at, n := l.outputs.end, len(l.sections)-1
	l.outputs.write(s)
	if o.size += int64(len(s)); n >= 0 && l.sections[n].command == o.number && l.sections[n].at+l.sections[n].size == at {
		l.sections[n].size += int64(len(s))
	} else if s != "" {
		l.sections = append(l.sections, section{o.number, at, int64(len(s))})
	}
	for len(l.sections) > maxSections || len(l.sections) > 0 && l.outputs.kept(l.sections[0]).size == 0 {
		l.sections = l.sections[1:]
	}
}

// printed returns a part of an output.
func (l *Log) printed(o *output, offset int64, most int) (Page, error) {
	var own []section
	for _, s := range l.sections {
		if s.command == o.number {
			own = append(own, s)
		}
	}
	return l.outputs.page(o.size, own, offset, most)
}

// kept reports whether a command is among the last ones.
func (l *Log) kept(o *output) bool { return o.number > l.commands-len(l.list) }

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
