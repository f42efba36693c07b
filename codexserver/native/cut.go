package native

import (
	"cmp"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// final is the answer of a turn, as far as it has arrived. The provider may have cut it
// off.
type final struct {
	text string
	cut  model.Cut // "" for a whole answer
	full bool      // the context window is full
	call string    // the tool that the model called in its text alone, although it was told how to call; else ""

	called string // the tool that the model called although it was to write its answer alone; else ""
}

// take takes the answer from a response without calls.
func (t *turn) take(resp *model.Response) {
	t.answer = final{text: lastMessage(resp.Items), cut: resp.Cut, full: t.conv.full()}
	if t.answer.text == "" && t.answer.cut == "" {
		t.answer.cut = model.CutEmpty
	}
}

// incomplete returns why the answer is incomplete, "" if it is whole.
func (a *final) incomplete() string {
	switch {
	case a.called != "":
		return "the model called " + a.called + " although it was asked for the form of its answer alone, " +
			"so that was not run"
	case a.call != "":
		return "the model called " + a.call +
			" in its text, where its server did not read it, so that was not run: start that server with the parser " +
			"for its model's calls " +
			"(llama-server --jinja; vLLM --enable-auto-tool-choice --tool-call-parser NAME; SGLang " +
			"--tool-call-parser NAME)"
	case a.cut == "":
		return ""
	case a.cut == model.CutEmpty:
		return protocol.EmptyAnswer
	case a.cut == model.CutFilter:
		return "the provider's content filter ended it"
	case a.full:
		return "it reached the end of the model's context window"
	case a.cut == model.CutLength:
		return "it reached the model's limit of output tokens"
	}
	return fmt.Sprintf("the provider ended it (%s)", a.cut)
}

const (
	textCallHead = "<tool_call_in_text>"
	textCall     = textCallHead + "\nYour last message has a call of %s in its text. Nothing reads it there, and it " +
		"was not run. Make the call as a tool call of the API, not in text. If you wanted no call, give your answer " +
		"without one.\n</tool_call_in_text>"
)

// requestCall adds a message to the history when the model's answer is a call in its text, and reports whether it did; the
// model then answers again. It does so once in a turn.
func (t *turn) requestCall() bool {
	if t.answer.cut != "" {
		return false
	}
	name := model.TextCall(t.answer.text, t.offer())
	if name == "" || t.told {
		t.answer.call = cmp.Or(name, t.inText)
		return false
	}
	t.told, t.inText = true, name
	t.conv.record(userMessage(fmt.Sprintf(textCall, name)))
	t.conv.emit(protocol.BackgroundEvent{Message: fmt.Sprintf("the model called %s in its text, where its server did "+
		"not read it; the model was asked to make the call", name)})
	return true
}
