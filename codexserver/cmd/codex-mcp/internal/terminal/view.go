package terminal

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// view shows the events of a conversation as blocks, with an empty line between two blocks.
type view struct {
	s     *screen
	home  string // shown as a tilde
	cwd   string // paths below it are shown relative
	brief bool   // long output is shortened
	asks  bool   // the user can be asked
	hold  bool   // the last message is not shown here: it goes to standard output

	block  string // the key of the last block
	flow   *flow  // the text that streams; nil without one
	held   string // the message that is not shown yet
	last   string // the last message that was shown
	piece  bool   // pieces of the next message were shown
	mused  bool   // pieces of the next reasoning were shown
	failed string // the last error that was shown

	running []*command // in the order of their start; the first one is shown live
	wanted  []want     // the requests for approval whose calls have not begun
	asked   []string   // the calls that the user was asked about and that have not begun
	plan    []protocol.PlanStep
	usage   *protocol.TokenUsageInfo
}

// want is a request for approval.
type want struct{ call, what string }

// open begins a block and returns true, or continues it when it is the last one.
func (v *view) open(key string) (begun bool) {
	if v.block == key {
		return false
	}
	v.settle()
	if v.block != "" {
		v.s.write("\n")
	}
	v.block = key
	return true
}

// settle ends the text that streams.
func (v *view) settle() {
	if v.flow != nil {
		v.flow.end()
		v.flow = nil
	}
	v.s.fresh()
}

func (v *view) stream(key string, st style, prefix, indent, text string) {
	if v.open(key) {
		v.flow = &flow{s: v.s, st: st, prefix: prefix, indent: indent}
	}
	if v.flow != nil {
		v.flow.add(text)
	}
}

// event shows one event.
func (v *view) event(m protocol.EventMsg) {
	switch m := m.(type) {
	case protocol.TaskComplete, protocol.TurnAborted, protocol.ShutdownComplete:
		v.unfinished()
	case protocol.AgentReasoningDelta, protocol.AgentReasoning, protocol.AgentReasoningSectionBreak:
		v.refused()
		v.reasoning(m)
	case protocol.AgentMessageDelta:
		v.refused()
		v.release()
		if !v.hold && m.Delta != "" {
			v.piece = true
			v.stream("message", plain, "", "", m.Delta)
		}
	case protocol.AgentMessage:
		v.refused()
		v.message(m.Message)
	case protocol.ExecApprovalRequest:
		v.release()
		v.request(m.CallID, elicit.ShowCommand(m.Command))
	case protocol.PatchApprovalRequest:
		v.release()
		v.request(m.CallID, "changes to "+count(len(m.Changes), "file"))
	case protocol.ExecCommandBegin, protocol.ExecCommandOutputDelta, protocol.ExecCommandEnd:
		v.release()
		v.exec(m)
	case protocol.PatchApplyBegin, protocol.PatchApplyEnd:
		v.release()
		v.patch(m)
	case protocol.PlanUpdate:
		v.checklist(m)
	case protocol.MCPToolCallBegin:
		v.open("tool " + m.CallID)
		v.s.title("* ", bold, showWord(m.Invocation.Server)+" "+showWord(m.Invocation.Tool), cut(showProse(oneLine(m.Invocation.Arguments)), 200))
	case protocol.MCPToolCallEnd:
		v.toolEnd(m)
	case protocol.WebSearchEnd:
		v.open("search")
		v.s.title("* ", bold, "searched the web", cut(showOutput(oneLine([]byte(m.Query))), 200))
	case protocol.ViewImageToolCall:
		v.open("image")
		v.s.title("* ", bold, "looked at an image", v.path(m.Path))
	case protocol.TokenCount:
		if m.Info != nil {
			v.usage = m.Info
		}
	case protocol.BackgroundEvent:
		v.note(m.Message)
	case protocol.StreamError:
		v.alert("stream error: ", m.Message)
	case protocol.Error:
		v.failed = m.Message
		v.alert("error: ", m.Message)
	}
}

// message shows a whole message, unless its pieces were shown.
func (v *view) message(text string) {
	v.release()
	switch {
	case v.hold:
		v.held = text
	case v.piece:
		v.settle()
	default:
		v.said(text)
	}
	v.last, v.piece = text, false
	v.closeBlock("message")
}

// closeBlock makes the next open begin a new block, even with the same key.
func (v *view) closeBlock(key string) {
	if v.block == key {
		v.block = key + " (ended)"
	}
}

// release shows the held message, which is not the answer since more follows.
func (v *view) release() {
	if text := v.held; text != "" {
		v.held = ""
		v.said(text)
	}
}

func (v *view) reasoning(m protocol.EventMsg) {
	const key = "reasoning"
	switch m := m.(type) {
	case protocol.AgentReasoningDelta:
		v.mused = true
		v.stream(key, dim, "~ ", "  ", m.Delta)
	case protocol.AgentReasoningSectionBreak:
		if v.block == key && v.flow != nil {
			v.flow.add("\n")
		}
	case protocol.AgentReasoning:
		if !v.mused {
			v.open(key)
			v.paragraphs("~ ", dim, m.Text)
		}
		v.mused = false
		v.settle()
		v.closeBlock(key)
	}
}

// said shows a whole message of the model.
func (v *view) said(text string) {
	v.open("message")
	f := &flow{s: v.s}
	f.add(strings.TrimRight(text, "\n"))
	f.end()
	v.closeBlock("message")
}

// paragraphs shows a text of several lines after a prefix.
func (v *view) paragraphs(prefix string, st style, text string) {
	for _, line := range lines(showProse(strings.TrimSpace(text))) {
		v.s.prose(v.s.paint(st, prefix), st, line)
		prefix = strings.Repeat(" ", width(prefix))
	}
}

// note shows a remark of the server.
func (v *view) note(text string) {
	v.open("note")
	v.paragraphs("note: ", dim, text)
}

func (v *view) alert(what, text string) {
	v.release()
	v.open("alert")
	v.paragraphs(what, red, text)
}

func (v *view) toolEnd(m protocol.MCPToolCallEnd) {
	if v.open("tool " + m.CallID) {
		v.s.title("* ", bold, showWord(m.Invocation.Server)+" "+showWord(m.Invocation.Tool), "")
	}
	if m.Result.Err != nil {
		v.s.prose("  ", red, cut(showOutput(oneLine([]byte(*m.Result.Err))), 400))
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
	v.closeBlock("plan")
	v.open("plan")
	v.s.line("", bold, "Plan")
	for _, step := range m.Plan {
		text := showOutput(oneLine([]byte(step.Step)))
		switch step.Status {
		case "completed":
			v.s.prose("  "+v.s.paint(green, "✓")+" ", dim, text)
		case "in_progress":
			v.s.prose("  "+v.s.paint(cyan, "▸")+" ", bold, text)
		default:
			v.s.prose("  · ", plain, text)
		}
	}
}

// request shows a request for approval at once if the user cannot be asked. Otherwise the
// question shows it, or refused does.
func (v *view) request(call, what string) {
	if v.asks {
		v.wanted = append(v.wanted, want{call, what})
		return
	}
	v.open("request " + call)
	v.s.title(v.s.paint(magenta, "?")+" ", bold, cut(what, titleLength), "needs an approval")
}

// refused shows the requests that a rule or the policy refused: the engine continues, and
// no question was asked here.
func (v *view) refused() {
	wanted := v.wanted
	v.wanted = nil
	for _, w := range wanted {
		v.open("refused " + w.call)
		v.s.title(v.s.paint(red, "✗")+" ", plain, cut(w.what, titleLength), "not done: a rule or the policy refused it")
	}
}

// begins removes a call from the waiting ones, and reports whether the user was asked about
// it.
func (v *view) begins(call string) (asked bool) {
	v.wanted = slices.DeleteFunc(v.wanted, func(w want) bool { return w.call == call })
	asked = slices.Contains(v.asked, call)
	v.asked = slices.DeleteFunc(v.asked, func(c string) bool { return c == call })
	return asked
}

// path returns a path for users: relative if it is below the folder of the conversation.
func (v *view) path(p string) string {
	if rel, err := filepath.Rel(v.cwd, p); v.cwd != "" && err == nil && filepath.IsLocal(rel) {
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
	case failed && text != "" && text != v.failed:
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

// textsOf returns the text blocks of a result, without those that are only for models.
func textsOf(r *mcptypes.CallToolResult) []string {
	var texts []string
	for _, block := range r.Content {
		t, ok := block.(*mcptypes.TextContent)
		if ok && (t.Annotations == nil || !slices.Equal(t.Annotations.Audience, []mcptypes.Role{mcptypes.RoleAssistant})) {
			texts = append(texts, t.Text)
		}
	}
	return texts
}

// oneLine joins the lines of a text.
func oneLine(text []byte) string {
	return strings.Join(strings.Fields(string(text)), " ")
}

// folder returns a folder for users, with a tilde for the home.
func (v *view) folder(dir string) string {
	shown := showWord(dir)
	if rel, err := filepath.Rel(v.home, dir); v.home != "" && err == nil && filepath.IsLocal(rel) && shown == dir {
		return filepath.Join("~", rel)
	}
	return shown
}

// question begins the block of a question about a call.
func (v *view) question(call string) {
	v.release()
	v.wanted = slices.DeleteFunc(v.wanted, func(w want) bool { return w.call == call })
	if call != "" {
		v.asked = append(v.asked, call)
	}
	v.closeBlock("question")
	v.open("question")
}
