package terminal

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// result is the last line of the JSON form.
type result struct {
	// Type is "result".
	Type string `json:"type"`
	// ThreadID is the conversation's id, "" when none began.
	ThreadID string `json:"threadId"`
	// Text is the answer, or why there is none.
	Text string `json:"text"`
	// IsError means that there is no answer.
	IsError bool `json:"isError"`
	// Notes say why the user could not be asked, and what was not approved.
	Notes []string `json:"notes,omitempty"`
}

// finish shows how the call ended and returns the exit status. That of an answer that is not
// whole is StatusFailed.
func (cl *client) finish(e end) int {
	code := cl.conclude(e)
	if code == StatusAnswered && e.result.Status == protocol.StatusIncomplete {
		return StatusFailed
	}
	return code
}

// conclude is finish for an answer that is whole.
func (cl *client) conclude(e end) int {
	code, texts, thread := StatusAnswered, []string(nil), cl.thread
	switch {
	case e.err == nil:
		texts = append([]string{e.result.Answer}, e.result.Notes...)
		if !cl.task.Told {
			for _, refusal := range e.result.Refused {
				texts = append(texts, refusal.String())
			}
		}
		if s := e.result.Status; s == protocol.StatusFailed || s == protocol.StatusAborted {
			code = StatusFailed
		}
		thread = cmp.Or(e.result.ThreadID, thread)
	case errors.Is(e.err, context.Canceled):
		texts = []string{"interrupted"}
	case errors.Is(e.err, jsonrpc.ErrClosed):
		code, texts = StatusFailed, []string{"the server is gone"}
	default:
		code, texts = StatusFailed, []string{e.err.Error()}
	}
	if cl.stopping.interrupted || errors.Is(e.err, context.Canceled) {
		code = StatusInterrupted
	}
	if cl.stopping.lost {
		code = StatusFailed
	}
	if len(texts) == 0 {
		texts = []string{""}
	}
	if cl.task.JSON {
		line, err := json.Marshal(result{"result", thread, texts[0], code != StatusAnswered, texts[1:]}, jsontext.AllowInvalidUTF8(true))
		if err == nil {
			cl.line(line)
		}
		return code
	}
	for _, tool := range []string{"codex: ", "codex-reply: "} { // models learn which tool failed
		if reason, ok := strings.CutPrefix(texts[0], tool); ok && code == StatusFailed {
			texts[0] = "error: " + reason
		}
	}
	if cl.stopping.stopped && code == StatusInterrupted {
		texts = nil // the screen shows it
	}
	cl.v.end(code != StatusAnswered, texts)
	if cl.v.hold && code == StatusAnswered { // then there is a text
		io.WriteString(cl.console.Out, strings.TrimRight(showProse(texts[0]), "\n")+"\n")
	}
	cl.foot()
	return code
}

// foot shows the tokens used and the command that continues.
func (cl *client) foot() {
	spent := cl.v.spent()
	goesOn := cl.thread != "" && cl.task.Program != "" && (cl.task.Resume != "" || cl.v.worked())
	if spent == "" && !goesOn {
		return
	}
	cl.v.open("")
	if spent != "" {
		cl.s.line("", dim, spent)
	}
	if goesOn {
		cl.s.line("", dim, fmt.Sprintf(`continue with: %s --resume %s "…"`, cl.task.Program, showWord(cl.thread)))
	}
}

// line writes one line of the JSON form.
func (cl *client) line(raw stdjson.RawMessage) {
	io.WriteString(cl.console.Out, Line(raw)) // output records an error
}

// Line returns JSON as one line. It writes characters that a terminal could interpret as
// JSON escapes, which mean the same.
func Line(raw stdjson.RawMessage) string {
	var b strings.Builder
	for _, r := range string(raw) {
		switch {
		case r == '\n' || r == '\r' || r == '\t': // only between tokens: strings in JSON have none
		case r < 0x7f || unicode.IsPrint(r) && string(r) != mark:
			b.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
	}
	b.WriteByte('\n')
	return b.String()
}
