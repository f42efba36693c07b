package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// titleLength is how many characters of a title are shown.
const titleLength = 600

func (v *view) commandBegins(m protocol.ExecCommandBegin) {
	c := v.take(m.CallID)
	c.shown, c.began = showScript(m.Command), time.Now()
	c.out.at, v.live = c.began, c
	v.calls = append(v.calls, c)
	v.command(c, "# "+v.folder(m.Cwd))
}

// showScript shows a command, and a script of one of the system's shells without the shell. Its further
// lines have a bar, so that none looks like one of ours.
func showScript(argv []string) string {
	script, ok := scriptOf(argv)
	if !ok {
		return elicit.ShowCommand(argv)
	}
	return strings.ReplaceAll(script, "\n", "\n  │ ")
}

// scriptOf returns the script that a command passes to one of the system's shells, if it has no hidden
// characters.
func scriptOf(argv []string) (script string, ok bool) {
	if len(argv) != 3 || argv[1] != "-c" && argv[1] != "-lc" || !slices.Contains([]string{"bash", "sh", "zsh"}, systemProgram(argv[0])) || strings.TrimSpace(argv[2]) == "" {
		return "", false
	}
	script = strings.Trim(argv[2], "\n")
	return script, elicit.ShowText(script) == script
}

// systemProgram returns the name of a program that the system has, or else the whole path.
func systemProgram(path string) string {
	for _, dir := range []string{"/bin/", "/usr/bin/"} {
		if name, ok := strings.CutPrefix(path, dir); ok {
			return name
		}
	}
	return path
}

// commandPrints takes a piece of a command's output, and shows it unless it has to wait.
func (v *view) commandPrints(m protocol.ExecCommandOutputDelta) {
	i := slices.IndexFunc(v.calls, func(c *call) bool { return c.id == m.CallID && !c.began.IsZero() })
	if i < 0 || !v.brief {
		return
	}
	c := v.calls[i]
	c.out.add(string(m.Chunk), c.out.room(c.began))
	v.print(c)
}

// patience is how long the output of a command waits for another one to be silent, so that titles
// do not alternate.
const patience = 3 * time.Second

// print shows the output of a running command that is due. It waits while another command prints
// or a message is being written.
func (v *view) print(c *call) {
	other := v.live != nil && v.live != c && time.Since(v.live.out.at) < patience
	if other || v.coming.shown > 0 || v.held != "" || !c.out.waits(c.began) {
		return
	}
	v.live = c
	v.again(c)
	c.out.show(v, c.out.room(c.began))
}

// due shows the output that has become due.
func (v *view) due() {
	for _, c := range v.calls {
		if !c.began.IsZero() {
			v.print(c)
		}
	}
}

func (v *view) commandEnds(m protocol.ExecCommandEnd) {
	c := v.take(m.CallID)
	v.ended(c, cmp.Or(m.AggregatedOutput, m.Stdout+m.Stderr))
	st := green
	if m.ExitCode != 0 {
		st = red
	}
	v.s.line("  ", st, fmt.Sprintf("exit %d · %s", m.ExitCode, took(time.Duration(m.Duration))))
}

// ended shows what is left of a command's output.
func (v *view) ended(c *call, output string) {
	if v.live == c {
		v.live = nil
	}
	v.again(c)
	if v.brief {
		c.out.end(output)
		c.out.show(v, c.out.seen+1)
		return
	}
	for _, line := range lines(lineBreaks(output)) {
		v.s.line("  ", plain, showOutput(line))
	}
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

// omitted says how many lines are not shown.
func (v *view) omitted(n int) {
	if n > 0 {
		v.s.line("  ", dim, "… "+count(n, "line")+" left out …")
	}
}

// unfinished shows the commands that are running at the end of the turn.
func (v *view) unfinished() {
	v.refused()
	for _, c := range v.calls {
		if !c.began.IsZero() {
			v.ended(c, "")
			v.s.line("  ", red, "ended with the turn")
		}
	}
	v.calls = nil
}

// sign shows that the turn, which began at a time, goes on.
func (v *view) sign(began time.Time) {
	what, indent := "working", ""
	if i := slices.IndexFunc(v.calls, func(c *call) bool { return !c.began.IsZero() }); i >= 0 {
		what, began = "running", v.calls[i].began
		if v.block == blockOf(v.calls[i].id) {
			indent = "  "
		}
	}
	if indent == "" {
		v.open("sign")
	}
	v.s.sign(indent, fmt.Sprintf("%s · %d s · ctrl-C stops", what, int(time.Since(began).Seconds())))
}
