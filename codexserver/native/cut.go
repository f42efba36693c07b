package native

import (
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
