package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json/jsontext"
)

// question is an elicitation that waits for the user.
type question struct {
	ctx    context.Context // ends when the question is withdrawn
	reply  replier
	params questionParams
}

// questionParams has the params of elicitation/create that the terminal needs.
type questionParams struct {
	Message string `json:"message"`
	Schema  struct {
		Properties jsontext.Value `json:"properties"`
		Required   []string       `json:"required"`
	} `json:"requestedSchema"`
	Meta struct {
		Approval struct {
			Kind    string                         `json:"kind"` // exec or patch
			CallID  string                         `json:"callId"`
			Command []string                       `json:"command"`
			Changes map[string]protocol.FileChange `json:"changes"`
			Reach   string                         `json:"reach"` // "" if a sandbox confines it, or that is not known
		} `json:"codex/approval"`
	} `json:"_meta"`
}

// answer sends the user's answer.
func (q *question) answer(action mcptypes.ElicitResultAction, content map[string]mcptypes.ElicitValue) {
	q.reply.Reply(&mcptypes.ElicitResult{Action: action, Content: content}, nil) // the reply to a withdrawn question is dropped
}

// asks returns the line of the message that asks, as it may be shown.
func (q *question) asks() string {
	message := lines(q.params.Message)
	if len(message) == 0 {
		return ""
	}
	return elicit.OneLine(message[asking(message)], 0)
}

// asking returns which line of a message asks.
func asking(message []string) int {
	return max(0, slices.IndexFunc(message, func(line string) bool { return strings.HasPrefix(line, "Allow ") }))
}

// withdrawn says that the server no longer waits for an answer, and why: what another answer was, and
// where it was given, if the server says so.
func (q *question) withdrawn() string {
	err := context.Cause(q.ctx)
	if !errors.Is(err, jsonrpc.ErrCancelled) {
		return "withdrawn: the server is gone"
	}
	_, reason, _ := strings.Cut(err.Error(), jsonrpc.ErrCancelled.Error()+": ")
	switch reason {
	case "", context.Canceled.Error():
		return "withdrawn: it was answered elsewhere, or the turn is over"
	}
	if answer, elsewhere := strings.CutPrefix(reason, approval.ErrElsewhere.Error()); elsewhere {
		return "answered elsewhere" + showOutput(oneLine([]byte(answer)))
	}
	return "withdrawn: " + showOutput(oneLine([]byte(reason)))
}

// prompt is the dialogue for one question.
type prompt struct {
	*question
	s       *screen
	v       *view
	keys    *reader
	pause   time.Duration
	signals <-chan os.Signal // the signals that end the dialogue
	signal  os.Signal        // the signal that ended it
	form    []field          // the fields to fill in; nil for an approval
	session string           // the words of an approval for the session, "" if none is offered
	always  string           // the lasting rule that is offered, "" if there is none
	restore func()           // restores the terminal; nil when it is restored
	others  func() []*question
}

// outcome is how the dialogue ended.
type outcome int

const (
	answered outcome = iota
	silent           // nothing was typed in time
	gone             // withdrawn
	stopped          // the user stops the turn
)

// run shows the question and handles keys until the question is answered or withdrawn, or
// the user stops the turn. It restores the terminal.
func (p *prompt) run() outcome {
	var err error
	if p.form, err = fields(p.params.Schema.Properties, p.params.Schema.Required); err != nil {
		p.reply.Reply(nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "requestedSchema: %v", err))
		return gone
	}
	p.session, p.always = offers(&p.params)
	defer p.cooked()
	if err := p.raw(); err != nil {
		return p.fail(err)
	}
	p.body()
	if err := p.keys.flush(); err != nil {
		return p.fail(err)
	}
	if _, out := p.quiet(p.pause); out != answered {
		return out
	}
	p.queue()
	for {
		p.offer()
		k, out := p.key()
		if out != answered {
			return out
		}
		if done, out := p.press(k); done {
			return out
		}
	}
}

// queue lists the questions that wait behind this one, so that the user sees them together.
func (p *prompt) queue() {
	const most = 8
	others := p.others()
	if len(others) == 0 {
		return
	}
	p.s.line("  ", dim, count(len(others), "more question")+":")
	for _, q := range others[:min(len(others), most)] {
		p.s.prose("  · ", further, dim, cut(q.asks(), titleLength))
	}
}

// fail reports to the server that the user cannot be asked.
func (p *prompt) fail(err error) outcome {
	p.v.note("a question cannot be asked here, because the terminal cannot be read: " + err.Error())
	p.reply.Reply(nil, fmt.Errorf("the terminal cannot be read: %w", err))
	return gone
}

func (p *prompt) raw() error {
	restore, err := p.keys.in.Raw()
	if err == nil {
		p.restore, p.s.raw = restore, true
	}
	return err
}

func (p *prompt) cooked() {
	if p.restore != nil {
		p.restore()
		p.restore, p.s.raw = nil, false
	}
}

// key waits for one key. A key that is followed by more input at once is part of a sequence
// or of pasted text, and counts as keyOther.
func (p *prompt) key() (key, outcome) {
	text, out := p.wait(nil)
	if out != answered {
		return 0, out
	}
	more, out := p.quiet(sequenceGap)
	if more {
		return keyOther, out
	}
	return keyOf(text), out
}

// quiet waits until nothing has been typed for a while, and reports whether anything was
// typed. Keys right after a question appears belong to something else that the user is
// typing.
func (p *prompt) quiet(long time.Duration) (typed bool, out outcome) {
	for {
		_, out := p.wait(time.After(long))
		switch {
		case out == silent:
			return typed, answered
		case out != answered:
			return typed, out
		}
		typed = true
	}
}

// wait waits for input, for late, or for the end of the dialogue.
func (p *prompt) wait(late <-chan time.Time) (text string, out outcome) {
	select {
	case text = <-p.keys.next():
		p.keys.done()
	case <-late:
		out = silent
	case <-p.ctx.Done():
	case p.signal = <-p.signals:
		return "", p.abort()
	}
	switch {
	case p.ctx.Err() != nil: // a key that came at the same moment does not count
		return p.withdraw()
	case out == answered && stops(text):
		return text, p.abort()
	}
	return text, out
}

func (p *prompt) withdraw() (string, outcome) {
	p.result(dim, "· ", p.question.withdrawn())
	return "", gone
}

func (p *prompt) abort() outcome {
	p.result(red, "■ ", "stopped")
	p.answer(mcptypes.ElicitResultActionCancel, nil)
	return stopped
}

// result shows how the question ended.
func (p *prompt) result(st style, sign, text string) {
	p.s.line("  "+p.s.paint(st, sign), plain, text)
}

// press handles one key.
func (p *prompt) press(k key) (done bool, out outcome) {
	switch {
	case k == 's', k == keyEscape:
		return true, p.abort()
	case k == 'n':
		p.result(red, "✗ ", "denied")
		p.answer(mcptypes.ElicitResultActionDecline, nil)
		return true, answered
	case k == 'd' && p.form == nil:
		return p.denyWithWords()
	case k == 'y' && p.form != nil:
		return p.fillIn()
	case k == 'y':
		p.result(green, "✓ ", "approved")
		p.answer(mcptypes.ElicitResultActionAccept, nil)
		return true, answered
	case k == 'a' && p.session != "":
		p.result(green, "✓ ", "approved "+p.session)
		p.answer(mcptypes.ElicitResultActionAccept, map[string]mcptypes.ElicitValue{
			"decision": mcptypes.ElicitString(string(elicit.ApprovedForSession)),
		})
		return true, answered
	case k == 'w' && p.always != "":
		p.result(green, "✓ ", "approved, always")
		p.answer(mcptypes.ElicitResultActionAccept, map[string]mcptypes.ElicitValue{
			"decision": mcptypes.ElicitString(string(elicit.ApprovedAlways)),
		})
		return true, answered
	}
	p.help()
	return false, answered
}

// denyWithWords reads a reason for the agent. After an empty line it returns to the keys.
func (p *prompt) denyWithWords() (done bool, out outcome) {
	text, out := p.line("reason for the agent: ")
	if out != answered {
		return true, out
	}
	if text == "" {
		_, out = p.quiet(p.pause)
		return out != answered, out
	}
	p.result(red, "✗ ", "denied, with your reason")
	p.answer(mcptypes.ElicitResultActionDecline, map[string]mcptypes.ElicitValue{"feedback": mcptypes.ElicitString(text)})
	return true, answered
}

// line reads a line with the terminal's own editing.
func (p *prompt) line(ask string) (string, outcome) {
	p.s.write("  " + ask)
	p.cooked()
	var b strings.Builder
	for !strings.ContainsAny(b.String(), "\r\n") {
		text, out := p.wait(nil)
		if out != answered {
			return "", out
		}
		b.WriteString(text)
	}
	p.s.mid = false // the terminal has shown the Enter key
	if err := p.raw(); err != nil {
		return "", p.fail(err)
	}
	text, _, _ := strings.Cut(strings.ReplaceAll(b.String(), "\r", "\n"), "\n")
	return strings.TrimSpace(strings.ToValidUTF8(text, "")), answered
}

// further is where the further rows of a line of a question begin: not where the lines that are
// ours do, the keys and the decision.
const further = 4

// body shows the question with its command or changes.
func (p *prompt) body() {
	a := &p.params.Meta.Approval
	p.v.question(a.CallID)
	script, ok := scriptOf(a.Command)
	ok = ok && strings.Contains(script, "\n")
	switch {
	case a.Kind == "patch":
		p.v.changes(a.Changes, 0)
		p.s.write("\n")
	case a.Kind == "exec" && unwieldy(a.Command):
		title, words := "The command, line by line:", a.Command
		if ok {
			title, words = "The script, for "+elicit.ShowCommand(a.Command[:2])+":", []string{script}
		}
		p.s.line("", dim, title)
		for _, word := range words {
			for line := range strings.SplitSeq(word, "\n") {
				p.s.line("  │ ", plain, elicit.ShowText(line))
			}
		}
		p.s.write("\n")
	}
	message := lines(p.params.Message)
	main := asking(message)
	for i, line := range message {
		switch {
		case i == main:
			if ok {
				line = withoutScript(line, a.Command)
			}
			p.s.prose(p.s.paint(magenta, mark)+" ", further, bold, elicit.ShowText(line))
			p.reach()
		case a.Kind == "patch" && (strings.HasPrefix(line, elicit.DiffIndent) || i == len(message)-1 && strings.HasPrefix(line, elicit.WholeIs)):
			// shown above, and there as a whole
		case a.Reach == "" || line != a.Reach:
			p.s.prose("  ", further, plain, elicit.ShowText(line))
		}
	}
}

// withoutScript returns the line that asks for a command without the command, if that is there whole: the
// script stands above it.
func withoutScript(line string, argv []string) string {
	before, after, whole := strings.Cut(line, elicit.ShowCommand(argv))
	start := strings.TrimRight(before, "`")
	quotes := before[len(start):]
	if rest, quoted := strings.CutPrefix(after, quotes); whole && quoted && quotes != "" {
		return start + "this script" + rest
	}
	return line
}

// reach shows that what is asked runs without a sandbox.
func (p *prompt) reach() {
	if words := p.params.Meta.Approval.Reach; words != "" {
		p.s.words("  "+p.s.paint(red, "!")+" ", further, plain, " ", strings.Fields(elicit.OneLine(words, 0)))
	}
}

// unwieldy reports whether a command is hard to read in the message, or is cut there.
func unwieldy(argv []string) bool {
	shown := elicit.ShowCommand(argv)
	return utf8.RuneCountInString(shown) > 1000 || strings.Contains(strings.Join(argv, ""), "\n")
}

// choice is a key with its meaning.
type choice struct{ key, short, long string }

func (p *prompt) choices() []choice {
	if p.form != nil {
		return []choice{
			{"y", "fill in", "fill in the form, field by field"},
			{"n", "decline", "decline; the turn continues"},
			{"s", "stop", "stop the turn (so do Esc and ctrl-C)"},
		}
	}
	all := []choice{{"y", "once", "approve this once"}}
	if p.session != "" {
		all = append(all, choice{"a", p.session, "approve this, and let the same words run again in this folder until the session ends; what runs in a sandbox runs again only there"})
	}
	if p.always != "" {
		all = append(all, choice{"w", "always", "approve this, and keep the rule for later questions, of other conversations too"})
	}
	return append(all,
		choice{"n", "deny", "deny; the agent continues and may try something else"},
		choice{"d", "deny and say why", "deny and write the agent a reason, in one line"},
		choice{"s", "stop", "stop the turn (so do Esc and ctrl-C)"})
}

// offer shows the keys.
func (p *prompt) offer() {
	var keys []string
	for _, c := range p.choices() {
		keys = append(keys, c.key+" "+c.short)
	}
	if p.always != "" {
		p.s.prose("  ", further, dim, "w: "+p.always)
	}
	p.s.words("  ", 2, plain, "   ", keys)
}

// help explains the keys.
func (p *prompt) help() {
	for _, c := range p.choices() {
		p.s.words("  "+p.s.paint(bold, c.key)+" ", 4, dim, " ", strings.Fields(c.long))
	}
}
