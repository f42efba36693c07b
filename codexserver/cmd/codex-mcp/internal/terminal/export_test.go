package terminal

import (
	"io"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// These are for fuzz tests without a connection.
var (
	ShowOutput = showOutput
	ShowProse  = showProse
	Thousands  = thousands
	Breakable  = breakable
	Fit        = fit
	Took       = took
)

// JSONLine returns a line of the JSON form.
func JSONLine(w io.Writer, raw []byte) {
	(&client{console: &Console{Out: w}}).line(raw)
}

// ScreenLine returns what a terminal without colours shows of a line.
func ScreenLine(text string) string {
	var b strings.Builder
	(&screen{w: &b}).line("", plain, text)
	return b.String()
}

// Message returns what a terminal of a width shows of a message that arrives in pieces.
func Message(width int, pieces ...string) string {
	var b strings.Builder
	v := &view{s: &screen{w: &b, seen: true, width: func() int { return width }}}
	for _, piece := range pieces[1:] {
		v.event(protocol.AgentMessageDelta{Delta: piece})
	}
	v.event(protocol.AgentMessage{Message: pieces[0]})
	return b.String()
}

// Output returns the lines of the output of a command that arrives in pieces.
func Output(pieces ...string) []string {
	var p printed
	for _, piece := range pieces {
		p.add(piece, headLines)
	}
	p.end("")
	var shown []string
	for _, line := range p.next {
		shown = append(shown, line.shown())
	}
	return shown
}

// Keys returns the keys of a question that offers all decisions, with what they do.
func Keys() map[string]string {
	keys := map[string]string{}
	for _, c := range (&prompt{session: "for this session", always: "a rule"}).choices() {
		keys[c.key] = c.short
	}
	return keys
}
