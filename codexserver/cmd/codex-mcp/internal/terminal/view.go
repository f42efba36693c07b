package terminal

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// view shows the events of a conversation as blocks, with an empty line between two blocks.
type view struct {
	s     *screen
	home  string // shown as a tilde
	cwd   string // paths below it are shown relative
	brief bool   // output is shown as it comes, and shortened
	asks  bool   // the user can be asked
	hold  bool   // the last message is not shown here: it goes to standard output

	begun  bool                             // a block was shown
	block  string                           // the key of the last block
	coming coming                           // the message that is being written
	held   string                           // the message that is not shown yet
	last   string                           // the last message
	shown  struct{ failure, remark string } // the last of each

	live  *call   // the running command whose output is shown as it comes
	calls []*call // in the order of their requests, until they end
	plan  []protocol.PlanStep
	usage *protocol.TokenUsageInfo
}

// call is a call that is to be approved, or is running.
type call struct {
	id    string
	shown string    // what it does
	asked bool      // the user was asked
	began time.Time // zero before it runs
	out   printed   // its output, if it is a command
}

// open begins a block and returns true, or continues the last one when that has this key.
// An empty key always begins one.
func (v *view) open(key string) (begun bool) {
	if key != "" && v.block == key {
		return false
	}
	v.s.fresh()
	if v.begun {
		v.s.write("\n")
	}
	v.begun, v.block = true, key
	return true
}

// blockOf returns the key of a call's block.
func blockOf(id string) string { return "call " + id }

// event shows one event.
func (v *view) event(m protocol.EventMsg) {
	switch m := m.(type) {
	case protocol.TaskComplete, protocol.TurnAborted, protocol.ShutdownComplete:
		v.broken()
		v.unfinished()
	case protocol.AgentMessageDelta:
		v.piece(m.Delta)
	case protocol.AgentReasoning:
		v.refused()
		v.open("")
		v.text("~ ", dim, m.Text)
	case protocol.AgentMessage:
		v.refused()
		v.message(m.Message)
	case protocol.ExecApprovalRequest:
		v.release()
		v.request(m.CallID, showScript(m.Command))
	case protocol.PatchApprovalRequest:
		v.release()
		v.request(m.CallID, "changes to "+count(len(m.Changes), "file"))
	case protocol.ExecCommandBegin:
		v.release()
		v.commandBegins(m)
	case protocol.ExecCommandOutputDelta:
		v.commandPrints(m)
	case protocol.ExecCommandEnd:
		v.release()
		v.commandEnds(m)
	case protocol.PatchApplyBegin:
		v.release()
		v.patchBegins(m)
	case protocol.PatchApplyEnd:
		v.patchEnds(m)
	case protocol.PlanUpdate:
		v.checklist(m)
	case protocol.MCPToolCallBegin:
		v.release()
		v.tool(m.CallID, m.Invocation)
	case protocol.MCPToolCallEnd:
		v.toolEnds(m)
	case protocol.WebSearchEnd:
		v.open("")
		v.s.title("* ", "searched the web", cut(showOutput(oneLine([]byte(m.Query))), 200))
	case protocol.ViewImageToolCall:
		v.open("")
		v.s.title("* ", "looked at an image", v.path(m.Path))
	case protocol.TokenCount:
		if m.Info != nil {
			v.usage = m.Info
		}
	case protocol.BackgroundEvent:
		v.note(m.Message)
	case protocol.ModelReroute:
		v.broken()
		v.note(m.Words())
	case protocol.StreamError:
		v.broken()
		const what = "stream error: " // the engine's message may begin with it
		v.alert(what, strings.TrimPrefix(m.Message, what))
	case protocol.Error:
		v.broken()
		v.shown.failure = m.Message
		v.alert("error: ", m.Message)
	}
}

// worked reports whether there is something to continue: a turn that failed before the model said
// anything leaves nothing.
func (v *view) worked() bool { return v.shown.failure == "" || v.usage != nil || v.last != "" }

// message shows a message of the model, or holds it until it is known whether it is the
// answer.
func (v *view) message(text string) {
	v.release()
	if v.last = text; v.hold {
		v.held = text
		return
	}
	if v.arrived(text) {
		return
	}
	v.open("")
	for _, line := range lines((&markdown{}).show(v.s, showProse(strings.Trim(text, "\r\n")), true)) {
		mark := hanging(line)
		v.s.prose(line[:mark], mark, plain, line[mark:])
	}
}

// release shows the held message, which is not the answer since more follows.
func (v *view) release() {
	if v.held != "" {
		v.open("")
		v.text("", plain, v.held)
		v.held = ""
	}
}

// text shows a text of several lines after a prefix.
func (v *view) text(prefix string, st style, text string) {
	lead := v.s.paint(st, prefix)
	for _, line := range lines(showProse(strings.Trim(text, "\r\n"))) {
		v.s.prose(lead, len(prefix), st, line)
		lead = strings.Repeat(" ", len(prefix))
	}
}

// note shows a remark of the server, unless it is the same as the last one.
func (v *view) note(text string) {
	if text == v.shown.remark {
		return
	}
	v.shown.remark = text
	v.open("note")
	v.text("note: ", dim, text)
}

func (v *view) alert(what, text string) {
	v.release()
	v.open("alert")
	v.text(what, red, text)
}

func (v *view) tool(call string, m protocol.MCPInvocation) {
	v.open("")
	v.s.title("* ", showWord(m.Server)+" "+showWord(m.Tool), cut(showProse(oneLine(m.Arguments)), 200))
	v.block = blockOf(call)
}

func (v *view) toolEnds(m protocol.MCPToolCallEnd) {
	if v.block != blockOf(m.CallID) {
		v.tool(m.CallID, m.Invocation)
	}
	if m.Result.Err != nil {
		v.s.line("  ", red, cut(showOutput(oneLine([]byte(*m.Result.Err))), 400))
		return
	}
	v.s.line("  ", dim, "answered · "+took(time.Duration(m.Duration)))
}

// checklist shows the plan whenever it changes.
func (v *view) checklist(m protocol.PlanUpdate) {
	if slices.Equal(v.plan, m.Plan) {
		return
	}
	v.refused()
	v.release()
	v.plan = slices.Clone(m.Plan)
	v.open("")
	v.s.line("", bold, "Plan")
	for _, step := range m.Plan {
		text := showOutput(oneLine([]byte(step.Step)))
		switch step.Status {
		case "completed":
			v.s.prose("  "+v.s.paint(green, "✓")+" ", 4, dim, text)
		case "in_progress":
			v.s.prose("  "+v.s.paint(cyan, "▸")+" ", 4, bold, text)
		default:
			v.s.prose("  · ", 4, plain, text)
		}
	}
}

// request shows a request for approval at once if the user cannot be asked. Otherwise the
// question shows it, or refused does.
func (v *view) request(id, shown string) {
	if v.asks {
		c := v.take(id)
		c.shown = shown
		v.calls = append(v.calls, c)
		return
	}
	v.open("")
	v.s.title(v.s.paint(magenta, "·")+" ", cut(shown, titleLength), "needs an approval")
}

// refused shows the requests that a rule or the policy refused: the engine continues, and
// no question was asked here.
func (v *view) refused() {
	v.calls = slices.DeleteFunc(v.calls, func(c *call) bool {
		refused := !c.asked && c.began.IsZero()
		if refused {
			v.open("")
			v.s.title(v.s.paint(red, "✗")+" ", cut(c.shown, titleLength), "not done: a rule or the policy refused it")
		}
		return refused
	})
}

// take removes a call from those that have not ended. It returns a new one for an unknown
// id.
func (v *view) take(id string) *call {
	i := slices.IndexFunc(v.calls, func(c *call) bool { return c.id == id })
	if i < 0 {
		return &call{id: id, shown: "(a command)"}
	}
	c := v.calls[i]
	v.calls = slices.Delete(v.calls, i, i+1)
	return c
}

// path returns a path for users: relative if it is below the folder of the conversation.
func (v *view) path(p string) string {
	if rel, ok := paths.Within(p, v.cwd); ok && v.cwd != "" {
		p = rel
	}
	return showWord(p)
}

// end shows the result of the call; texts are its blocks.
func (v *view) end(failed bool, texts []string) {
	v.unfinished()
	text := ""
	if len(texts) > 0 {
		text = texts[0]
	}
	switch {
	case failed && text != "" && text != v.shown.failure:
		v.release()
		v.alert("", text)
	case !failed && !v.hold && text != "" && text != v.last:
		v.message(text)
	case v.hold && v.held != text:
		v.release()
	}
	for _, remark := range texts[min(1, len(texts)):] {
		v.note(remark)
	}
}

// spent returns the line with the tokens used, "" when the provider reported none.
func (v *view) spent() string {
	if v.usage == nil {
		return ""
	}
	u := v.usage.TotalTokenUsage
	in := thousands(u.InputTokens) + " in"
	if u.CachedInputTokens > 0 {
		in += fmt.Sprintf(" (%s cached)", thousands(u.CachedInputTokens))
	}
	out := thousands(u.OutputTokens) + " out"
	if u.ReasoningOutputTokens > 0 {
		out += fmt.Sprintf(" (%s thinking)", thousands(u.ReasoningOutputTokens))
	}
	return "tokens: " + in + ", " + out
}

// oneLine joins the lines of a text.
func oneLine(text []byte) string {
	return strings.Join(strings.Fields(string(text)), " ")
}

// folder returns a folder for users, with a tilde for the home.
func (v *view) folder(dir string) string {
	shown := showWord(dir)
	if rel, ok := paths.Within(dir, v.home); ok && v.home != "" && shown == dir {
		return filepath.Join("~", rel)
	}
	return shown
}

// question begins the block of a question about a call.
func (v *view) question(id string) {
	v.release()
	v.open("")
	if id != "" {
		c := v.take(id)
		c.asked = true
		v.calls = append(v.calls, c)
		v.block = blockOf(id) // what an approved patch does is shown below it
	}
}
