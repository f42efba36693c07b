package terminal

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/show"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// A printer prints the events of a conversation as blocks of lines, with an empty line between two blocks.
// One goroutine uses it.
type printer struct {
	w        io.Writer
	cwd      string     // paths below it are shown relative
	asks     bool       // the user can be asked
	holds    bool       // the last message is not printed here: it goes to standard output
	rewrites bool       // the last line may change
	width    func() int // of the terminal, in cells; 0 without one

	mid     bool      // the cursor is not at the beginning of a line
	printed time.Time // when something was printed last
	drawn   int       // how many lines of what happens now are on the screen
	begun   bool      // a block was printed
	block   string    // the key of the last block

	message message
	failure string            // the last error
	remark  string            // the last note
	asked   map[string]bool   // the calls that a question has shown
	titles  map[string]string // of the calls that run
	now     show.Now          // what the turn does
	runs    string            // the call whose output that has
	usage   *protocol.TokenUsageInfo

	attempts []*attempt // of several at once, in place of the events of one
}

// message is the message that is being written, or was last.
type message struct {
	coming strings.Builder
	said   int    // bytes of it that were printed
	held   string // what is not printed until it is known whether it is the answer
	last   string
}

// write prints text that is safe to show.
func (p *printer) write(text string) {
	if text == "" {
		return
	}
	p.erase()
	p.mid, p.printed = !strings.HasSuffix(text, "\n"), time.Now()
	io.WriteString(p.w, text) // output records an error; lost progress does not matter
}

// fresh moves the cursor to the beginning of a line.
func (p *printer) fresh() {
	if p.mid {
		p.write("\n")
	}
}

// line prints a text after a prefix of ours. Further lines of the text are indented like the first.
func (p *printer) line(prefix, text string) {
	p.fresh()
	for row := range strings.SplitSeq(plain(text), "\n") {
		p.write(strings.TrimRight(prefix+row, " ") + "\n")
		prefix = strings.Repeat(" ", len([]rune(prefix)))
	}
}

// prose is line for a text in words, which is broken at blanks.
func (p *printer) prose(prefix, text string) {
	p.line(prefix, p.wrap(text, len([]rune(prefix))))
}

// row is prose for one of our lines that has words of others: further lines are indented by more than any of ours, so that
// none of those words can pass for one. The prefix has at most two characters.
func (p *printer) row(prefix, text string) {
	const indent = 4
	more := "\n" + strings.Repeat(" ", indent-len([]rune(prefix)))
	p.line(prefix, strings.ReplaceAll(p.wrap(text, indent), "\n", more))
}

// open begins a block, or continues the last one when that has this key. An empty key always begins one.
func (p *printer) open(key string) (begun bool) {
	p.release()
	if key != "" && p.block == key {
		return false
	}
	p.fresh()
	if p.begun {
		p.write("\n")
	}
	p.begun, p.block = true, key
	return true
}

// release prints the held message, which is not the answer since more follows.
func (p *printer) release() {
	if text := p.message.held; text != "" {
		p.message.held = ""
		p.open("")
		p.prose("", text)
	}
}

// event prints one event.
func (p *printer) event(m protocol.EventMsg) {
	switch m := m.(type) {
	case protocol.TaskStarted:
		p.does(thinking, "")
	case protocol.TaskComplete, protocol.TurnAborted, protocol.ShutdownComplete:
		p.broken()
		p.does("", "")
	case protocol.AgentMessageDelta:
		p.piece(m.Delta)
	case protocol.AgentMessage:
		p.says(m.Message)
		p.does(thinking, "")
	case protocol.AgentReasoning:
		p.open("")
		p.prose("~ ", trimmed(m.Text))
	case protocol.ExecApprovalRequest:
		p.waits(written(m.Command))
	case protocol.PatchApprovalRequest:
		p.waits("changes to files")
	case protocol.ExecCommandBegin:
		p.begins(m.CallID, "$ "+brief(written(m.Command))+"  # "+word(m.Cwd))
		p.does("running "+written(m.Command), m.CallID)
	case protocol.ExecCommandOutputDelta:
		if m.CallID == p.runs && p.now.Output != nil {
			p.now.Output.Write(m.Chunk)
		}
	case protocol.ExecCommandEnd:
		p.ends(m.CallID)
		if all := show.Excerpt(cmp.Or(m.AggregatedOutput, m.Stdout+m.Stderr), true); all != "" {
			p.line("  ", all)
		}
		p.line("  ", cmp.Or(m.Status, fmt.Sprint("exit ", m.ExitCode))+" · "+took(m.Duration))
	case protocol.PatchApplyBegin:
		p.does("changing files", "")
		if !p.asked[m.CallID] {
			p.open("")
			p.changes(m.Changes, nil, false)
		}
		p.block = m.CallID
	case protocol.PatchApplyEnd:
		p.does(thinking, "")
		p.open(m.CallID)
		if m.Success {
			p.line("  ", "applied")
			return
		}
		p.prose("  ", "not applied: "+trimmed(m.Stderr))
	case protocol.PlanUpdate:
		p.open("")
		for _, step := range m.Plan {
			p.prose("plan: ", Row(step.Step)+" ("+word(step.Status)+")")
		}
	case protocol.MCPToolCallBegin:
		p.begins(m.CallID, "* "+word(m.Invocation.Server)+" "+word(m.Invocation.Tool)+"  "+
			brief(string(m.Invocation.Arguments)))
		p.does("calling "+m.Invocation.Server+"/"+m.Invocation.Tool, "")
	case protocol.MCPToolCallEnd:
		p.ends(m.CallID)
		if m.Result.Err != nil {
			p.prose("  ", "failed: "+brief(*m.Result.Err))
			return
		}
		p.line("  ", "answered · "+took(m.Duration))
	case protocol.WebSearchEnd:
		p.open("")
		p.prose("* ", "searched the web: "+brief(m.Query))
	case protocol.ViewImageToolCall:
		p.open("")
		p.prose("* ", "looked at an image: "+p.path(m.Path))
	case protocol.TokenCount:
		p.usage = cmp.Or(m.Info, p.usage)
	case protocol.BackgroundEvent:
		if p.note(m.Message); strings.HasPrefix(p.now.Doing, waiting) { // it says why there is no approval
			p.does(thinking, "")
		}
	case protocol.ModelReroute:
		p.broken()
		p.note(m.Words())
	case protocol.StreamError:
		p.broken()
		p.open("note")
		p.prose("stream error: ", trimmed(strings.TrimPrefix(m.Message, "stream error: "))) // which engines say too
	case protocol.Error:
		p.broken()
		p.failure = m.Message
		p.open("alert")
		p.prose("error: ", trimmed(m.Message))
	}
}

// What a turn does while it waits: for the model, and for a person, with what is to be approved.
const thinking, waiting = "thinking", "waiting for approval of "

// trimmed returns a text of a model or the server as it is shown.
func trimmed(text string) string {
	return Prose(strings.ReplaceAll(strings.Trim(text, "\r\n"), "\r\n", "\n"))
}

// piece prints the lines that a piece of a message completes. It prints nothing of a message that may go to
// standard output.
func (p *printer) piece(text string) {
	if p.holds {
		return
	}
	p.message.coming.WriteString(text)
	if all := p.message.coming.String(); strings.Contains(text, "\n") {
		p.say(all[:strings.LastIndexByte(all, '\n')])
	}
}

// say prints the lines that were not printed yet of a message, without those at its end that are empty.
func (p *printer) say(all string) {
	all = strings.TrimRight(all, "\r\n")
	if p.message.said >= len(all) || strings.Trim(all, "\r\n") == "" {
		return
	}
	key, part := "message", strings.ReplaceAll(all[p.message.said:], "\r\n", "\n")
	if p.message.said == 0 {
		key = ""
	}
	if p.open(key) { // another block may have come between
		part = strings.TrimLeft(part, "\r\n")
	}
	p.block, p.message.said = "message", len(all)
	p.prose("", Prose(strings.TrimPrefix(part, "\n")))
}

// says prints a message, or what is left of the one that is being written, or holds it until it is known
// whether it is the answer.
func (p *printer) says(text string) {
	p.message.last = text
	if p.holds {
		p.release() // the one before
		p.message.held = trimmed(text)
		return
	}
	if !strings.HasPrefix(text, p.message.coming.String()[:p.message.said]) {
		p.message.said = 0
	}
	p.say(text)
	p.message.coming.Reset()
	p.message.said, p.block = 0, ""
}

// broken ends a message that is not complete.
func (p *printer) broken() {
	p.say(p.message.coming.String())
	p.message.coming.Reset()
	p.message.said = 0
}

// waits notes what waits for an approval when nobody can be asked here. Otherwise the question shows it.
func (p *printer) waits(what string) {
	if !p.asks {
		p.does(waiting+what, "")
	}
}

// begins begins the block of a call.
func (p *printer) begins(id, title string) {
	p.titles[id], p.remark = title, "" // what was said of another call may hold again
	p.open("")
	p.row("", title)
	p.block = id
}

// ends continues the block of a call that has ended, or begins another one if something came between.
func (p *printer) ends(id string) {
	if p.open(id) {
		p.row("", cmp.Or(p.titles[id], "(a call)"))
	}
	delete(p.titles, id)
	p.does(thinking, "")
}

// changes prints what a patch does to each file, with why that deserves attention, and with whole its lines.
func (p *printer) changes(changes map[string]protocol.FileChange, why map[string]string, whole bool) {
	for _, path := range slices.Sorted(maps.Keys(changes)) {
		c := changes[path]
		verb := map[string]string{"add": "new file", "delete": "delete", "update": "edit"}[c.Kind()]
		name := p.path(path)
		to, replaces := c.MovedTo(), c.Replaces()
		if to != "" {
			name += " → " + p.path(to)
		}
		switch {
		case replaces && to != "":
			name += " (replaces what is there)"
		case replaces:
			verb = "replace"
		}
		added, removed := c.Lines()
		reason := ""
		if why[path] != "" {
			reason = ": " + Row(why[path])
		}
		p.row("", fmt.Sprintf("%s %s  +%d -%d%s", verb, name, added, removed, reason))
		if diff := c.Diff(); whole && diff != "" {
			for line := range strings.SplitSeq(strings.TrimSuffix(diff, "\n"), "\n") {
				p.line("  ", elicit.ShowText(line)) // escaped, but complete: the user decides by it
			}
		}
	}
}

// note prints a remark of the server, unless it is the same as the last one.
func (p *printer) note(text string) {
	if text == p.remark {
		return
	}
	p.remark = text
	p.open("note")
	p.prose("note: ", trimmed(text))
}

// end prints how the call ended; texts are the answer, or why there is none, and remarks.
func (p *printer) end(failed bool, texts []string) {
	p.broken()
	text, remarks := texts[0], texts[1:]
	switch {
	case failed && text != "" && text != p.failure:
		p.open("alert")
		p.prose("", trimmed(text))
	case !failed && p.holds && p.message.held == trimmed(text):
		p.message.held = "" // it goes to standard output
	case !failed && !p.holds && text != "" && text != p.message.last:
		p.says(text)
	}
	for _, remark := range remarks {
		p.note(remark)
	}
}

// path returns a path for users: relative if it is below the folder of the conversation.
func (p *printer) path(path string) string {
	if rel, ok := paths.Within(path, p.cwd); ok && p.cwd != "" {
		path = rel
	}
	return word(path)
}

// tokens returns how many tokens went in and came out, of all attempts.
func (p *printer) tokens() (in, out int64) {
	if p.usage != nil {
		in, out = p.usage.TotalTokenUsage.InputTokens, p.usage.TotalTokenUsage.OutputTokens
	}
	for _, a := range p.attempts {
		more, said := a.events.tokens()
		in, out = in+more, out+said
	}
	return in, out
}

// took formats a duration.
func took(d protocol.Duration) string { return time.Duration(d).Round(time.Millisecond).String() }
