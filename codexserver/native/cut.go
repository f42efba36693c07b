package native

import (
	"fmt"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// final is the answer of a turn, as far as it has arrived. The provider may have cut it
// off.
type final struct {
	text    string
	cut     model.Cut // "" for a whole answer
	full    bool      // the context window is full
	resumed bool      // the model was asked to continue
	failed  error     // of the request to continue
}

const (
	resumeHead = "<answer_cut_off>"
	resume     = resumeHead + "\nYour last answer %s. %s\n</answer_cut_off>"
)

// drop removes the calls of a response that was cut off. A call may lack a part even if its
// arguments can be read, and providers refuse a history with half a call.
func drop(resp *model.Response) {
	if resp.Cut != "" {
		resp.Items = slices.DeleteFunc(resp.Items, func(item protocol.ResponseItem) bool { return messageText(item) == "" })
	}
}

// resume adds a response without calls to the answer. If the answer is cut off, resume asks
// the model once to continue, unless that cannot help, and reports whether it did.
func (t *turn) resume(resp *model.Response) bool {
	last := lastMessage(resp.Items)
	a := &t.answer
	if a.cut, a.full = resp.Cut, t.conv.full(); last != nil {
		a.text += *last
	} else if a.cut == "" {
		a.cut = model.CutEmpty
	}
	switch {
	case a.cut == "", a.cut == model.CutFilter, a.resumed, a.full, !t.inbox.empty(), t.budget.over():
		return false
	case a.cut == model.CutEmpty && (t.form != nil || len(resp.Items) == 0 && t.budget.requests == 1):
		return false // it is corrected, or the model has nothing to say
	}
	a.resumed = true
	was := "was cut off at the limit of output tokens"
	advice := "Its tool calls, if any, did not run. Continue exactly where the text stops, without repeating it. Write long files in several smaller steps."
	if last == nil {
		advice = "It has no text. If there were tool calls in it, they did not run. Think less, and write long files in several smaller steps."
	}
	if a.cut == model.CutEmpty {
		was, advice = "was empty", "Continue, or write your final answer."
	}
	t.conv.record(userMessage(fmt.Sprintf(resume, was, advice)))
	t.conv.emit(protocol.BackgroundEvent{Message: "the answer " + was + "; the model was asked to continue"})
	return true
}

// message returns the text of the answer, nil without one.
func (a *final) message() *string {
	if a.text == "" {
		return nil
	}
	return &a.text
}

// incomplete returns why the answer is incomplete, "" if it is whole.
func (a *final) incomplete() string {
	var why string
	switch {
	case a.cut == "":
		return ""
	case a.cut == model.CutEmpty && a.resumed:
		why = "the model wrote no text"
	case a.cut == model.CutEmpty:
		return protocol.EmptyAnswer
	case a.cut == model.CutFilter:
		why = "the provider's content filter ended it"
	case a.full:
		why = "it reached the end of the model's context window"
	case a.cut == model.CutLength:
		why = "it reached the model's limit of output tokens"
	default:
		why = fmt.Sprintf("the provider ended it (%s)", a.cut)
	}
	if a.failed != nil {
		why += "; asking the model to continue failed: " + a.failed.Error()
	}
	return why
}
