package terminal

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// How much is shown when it is shortened.
const (
	headLines   = 10 // of a command's output
	tailLines   = 5
	lineLength  = 600
	titleLength = 600
)

func (v *view) commandBegins(m protocol.ExecCommandBegin) {
	c := v.take(m.CallID)
	c.shown, c.began = elicit.ShowCommand(m.Command), time.Now()
	v.calls = append(v.calls, c)
	v.command(c, "# "+v.folder(m.Cwd))
}

func (v *view) commandEnds(m protocol.ExecCommandEnd) {
	v.again(v.take(m.CallID))
	output := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(cmp.Or(m.AggregatedOutput, m.Stdout+m.Stderr)) // so that overwritten text is not hidden
	v.shortened(lines(output), headLines, tailLines, func(line string) {
		if line = showOutput(line); v.brief {
			line = cut(line, lineLength)
		}
		v.s.line("  ", plain, line)
	})
	st := green
	if m.ExitCode != 0 {
		st = red
	}
	v.s.line("  ", st, fmt.Sprintf("exit %d · %s", m.ExitCode, took(time.Duration(m.Duration))))
}

// command begins the block of a command.
func (v *view) command(c *call, remark string) {
	v.open("")
	v.s.title(v.s.paint(dim, "$")+" ", cut(c.shown, titleLength), remark)
	v.block = blockOf(c.id)
}

// again continues the block of a command, after its title if another block followed.
func (v *view) again(c *call) {
	if v.block != blockOf(c.id) {
		v.command(c, "# continued")
	}
}

// shortened shows lines, and not those between the first and the last ones when long output
// is shortened.
func (v *view) shortened(all []string, head, tail int, show func(line string)) {
	left := len(all) - head - tail
	for i, line := range all {
		switch {
		case !v.brief || i < head || i >= head+left:
			show(line)
		case i == head:
			v.s.line("  ", dim, "… "+count(left, "line")+" left out …")
		}
	}
}

// unfinished shows the commands that are running at the end of the turn.
func (v *view) unfinished() {
	v.refused()
	for _, c := range v.calls {
		if !c.began.IsZero() {
			v.again(c)
			v.s.line("  ", red, "ended with the turn")
		}
	}
	v.calls = nil
}

// waits returns what the turn is doing, and since when. began is when the turn began.
func (v *view) waits(began time.Time) (string, time.Time) {
	for _, c := range v.calls {
		if !c.began.IsZero() {
			return "running", c.began
		}
	}
	return "working", began
}
