package thread

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

const (
	maxCommands = 1000    // how many commands' outputs are kept
	maxOutput   = 2 << 20 // bytes of one command, half from the beginning and half from the end
)

// output is the output of a command.
type output struct {
	number  int
	text    *text
	runs    bool
	omitted int64                            // bytes that were left out
	unended bool                             // the turn ended before the command
	rest    map[protocol.OutputStream][]byte // the beginning of an incomplete rune
}

func (t *Trail) beginCommand(m protocol.ExecCommandBegin) {
	t.commands++
	if t.outputs == nil {
		t.outputs, t.open = &shelf{store: t.store, max: MaxOutputs}, map[string]*output{}
	}
	o := &output{number: t.commands, text: t.outputs.newText(), runs: true, rest: map[protocol.OutputStream][]byte{}}
	t.list, t.open[m.CallID] = append(t.list, o), o
	if len(t.list) > maxCommands {
		t.list[0].text.clear()
		t.list, t.outputs.texts = slices.Delete(t.list, 0, 1), slices.Delete(t.outputs.texts, 0, 1)
	}
	t.entry(fmt.Sprintf("command %d: %s", o.number, showCommand(m.Command)), "in "+showLine(m.Cwd))
}

// print adds a piece of an output. endCommand replaces the pieces by the whole output, if
// the command ends.
func (t *Trail) print(m protocol.ExecCommandOutputDelta) {
	o := t.open[m.CallID]
	if o == nil || !t.kept(o) {
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
	room := max(0, maxOutput-int(o.text.to))
	kept := clip(valid(string(b[:whole])), room)
	o.omitted += int64(max(0, whole-len(kept)))
	o.text.add(kept)
}

func (t *Trail) endCommand(m protocol.ExecCommandEnd) {
	o := t.open[m.CallID]
	delete(t.open, m.CallID)
	if o == nil {
		return
	}
	o.runs, o.rest = false, nil
	if all := cmp.Or(m.AggregatedOutput, m.Stdout+m.Stderr); all != "" || o.text.to == 0 {
		o.text.clear()
		var left int
		all, left = middle(valid(all), maxOutput)
		o.omitted = m.Omitted + int64(left)
		if t.kept(o) {
			o.text.add(all)
		}
	}
	t.entry(fmt.Sprintf("command %d ended: exit code %d after %s, %d bytes of output",
		o.number, m.ExitCode, time.Duration(m.Duration).Round(time.Millisecond), o.text.to+o.omitted), "")
}

// kept reports whether a command is among the last ones.
func (t *Trail) kept(o *output) bool { return o.number > t.commands-len(t.list) }

// middle shortens a text to about most bytes by leaving out its middle, with a note there.
// It returns how many bytes are left out.
func middle(s string, most int) (string, int) {
	if len(s) <= most {
		return s, 0
	}
	head := clip(s, most/2)
	tail := s[len(s)-most/2:]
	for tail != "" && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	left := len(s) - len(head) - len(tail)
	return fmt.Sprintf("%s\n[... %d bytes are left out here ...]\n%s", head, left, tail), left
}

// valid replaces invalid UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
