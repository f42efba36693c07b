package terminal

import (
	"bytes"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// How much of a command's output is shown when it is shortened.
const (
	headLines   = 10
	tailLines   = 5
	lineLength  = 600
	titleLength = 600
	longestPart = 64 << 10 // bytes of a line without its end
)

// command is a running command, with the output that is not shown yet.
type command struct {
	id, shown, dir string
	since          time.Time
	title          bool   // the title is shown
	part           []byte // a line without its end
	wrote          bool   // output came while it ran
	all            bool   // output is not shortened
	head           []string
	printed        int // lines of the head that are shown
	tail           []string
	left           int // lines between head and tail, which are left out
	end            *protocol.ExecCommandEnd
}

func (v *view) exec(m protocol.EventMsg) {
	switch m := m.(type) {
	case protocol.ExecCommandBegin:
		v.begins(m.CallID)
		v.running = append(v.running, &command{
			id: m.CallID, shown: elicit.ShowCommand(m.Command), dir: m.Cwd, all: !v.brief, since: time.Now(),
		})
	case protocol.ExecCommandOutputDelta:
		if c := v.find(m.CallID); c != nil {
			c.write(m.Chunk)
		}
	case protocol.ExecCommandEnd:
		c := v.find(m.CallID)
		if c == nil { // its beginning was not seen
			c = &command{id: m.CallID, shown: "(a command)", all: !v.brief}
			v.running = append(v.running, c)
		}
		if !c.wrote {
			out := m.AggregatedOutput
			if out == "" {
				out = m.Stdout + m.Stderr
			}
			c.write([]byte(out))
		}
		c.end = &m
	}
	v.showRunning()
}

func (v *view) find(call string) *command {
	for _, c := range v.running {
		if c.id == call {
			return c
		}
	}
	return nil
}

// showRunning updates the screen. It shows concurrent commands one after another, in the
// order of their start.
func (v *view) showRunning() {
	for len(v.running) > 0 {
		c := v.running[0]
		v.showCommand(c)
		if c.end == nil {
			return
		}
		v.finish(c)
		v.running = v.running[1:]
	}
}

func (v *view) showCommand(c *command) {
	if !c.title || c.printed < len(c.head) {
		v.titled(c)
	}
	for ; c.printed < len(c.head); c.printed++ {
		v.output(c.head[c.printed])
	}
	if c.all { // there is no tail, and head may become long
		c.head, c.printed = nil, 0
	}
}

func (v *view) output(line string) {
	if line = showOutput(line); v.brief {
		line = cut(line, lineLength)
	}
	v.s.line("  ", plain, line)
}

// titled begins the command's block, or continues it after another block.
func (v *view) titled(c *command) {
	if !v.open("command " + c.id) {
		return
	}
	remark := "# continued"
	switch {
	case !c.title && c.dir != "":
		remark = "# " + v.folder(c.dir)
	case !c.title:
		remark = ""
	}
	v.s.title(v.s.paint(dim, "$")+" ", bold, cut(c.shown, titleLength), remark)
	c.title = true
}

func (v *view) finish(c *command) {
	v.titled(c)
	c.flush()
	v.showCommand(c)
	if c.left > 0 {
		v.s.line("  ", dim, "… "+count(c.left, "line")+" left out …")
	}
	for _, line := range c.tail {
		v.output(line)
	}
	switch {
	case c.end == nil:
		v.s.line("  ", red, "ended with the turn")
	case c.end.ExitCode == 0:
		v.s.line("  ", green, "exit 0 · "+took(time.Duration(c.end.Duration)))
	default:
		v.s.line("  ", red, fmt.Sprintf("exit %d · %s", c.end.ExitCode, took(time.Duration(c.end.Duration))))
	}
}

// unfinished shows the commands that are running at the end of the turn.
func (v *view) unfinished() {
	v.refused()
	for _, c := range v.running {
		v.finish(c)
	}
	v.running = nil
}

// waits returns what the turn is doing, and since when. began is when the turn began.
func (v *view) waits(began time.Time) (string, time.Time) {
	if len(v.running) == 0 {
		return "working", began
	}
	c := v.running[0]
	if c.left > 0 {
		return "running, " + count(len(c.head)+c.left+len(c.tail), "line") + " so far", c.since
	}
	return "running", c.since
}

// write adds output. A carriage return ends a line like a line feed, so that overwritten
// text is not hidden.
func (c *command) write(chunk []byte) {
	c.wrote = c.wrote || len(chunk) > 0
	c.part = append(c.part, chunk...)
	for {
		i := bytes.IndexAny(c.part, "\r\n")
		switch {
		case i < 0 && len(c.part) > longestPart:
			i = longestPart
			c.push(string(c.part[:i]))
			c.part = c.part[i:]
			continue
		case i < 0, c.part[i] == '\r' && i == len(c.part)-1 && c.end == nil: // a line feed may follow
			return
		}
		c.push(string(c.part[:i]))
		if c.part[i] == '\r' && i+1 < len(c.part) && c.part[i+1] == '\n' {
			i++
		}
		c.part = c.part[i+1:]
	}
}

// flush ends the last line.
func (c *command) flush() {
	if line := bytes.TrimRight(c.part, "\r"); len(line) > 0 {
		c.push(string(line))
	}
	c.part = nil
}

func (c *command) push(line string) {
	if c.all || len(c.head) < headLines {
		c.head = append(c.head, line)
		return
	}
	c.tail = append(c.tail, line)
	if len(c.tail) > tailLines {
		c.tail = c.tail[1:]
		c.left++
	}
}
