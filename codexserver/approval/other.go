package approval

import (
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// An Other is a [Subject] of which only the question itself says what it is about, such as the call of a tool of an MCP
// server.
type Other struct {
	// Ask is the question. Asking does not change it.
	Ask *elicit.Question
}

// Facts implements [Action].
func (o Other) Facts(bool) Facts {
	const kind = "approval_request"
	raw, err := json.Marshal(struct {
		Type    string         `json:"type"`
		Message string         `json:"message"`
		Meta    map[string]any `json:"_meta"`
	}{kind, o.Ask.Message, o.Ask.Meta}, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		raw = []byte(`{"type":"` + kind + `"}`) // the question's _meta is not JSON
	}
	return Facts{Kind: KindOther, Question: raw}
}

// Refusal implements [Action].
func (o Other) Refusal() protocol.Refusal {
	return protocol.Refusal{Kind: string(KindOther), What: plain.Short(o.Ask.Message, plain.MaxWords)}
}

// Call implements [Subject].
func (o Other) Call() string { return "" }

// Effect implements [Subject].
func (o Other) Effect() Effect { return GoesOn }

// Approver implements [Subject].
func (o Other) Approver() Approver { return Anyone }

// Each implements [Subject].
func (o Other) Each(*Rules) bool { return false }

// Rule implements [Subject]. No list is about it.
func (o Other) Rule(*Rules, bool) (out elicit.Outcome, decides bool) { return out, false }

// Lasting implements [Subject].
func (o Other) Lasting() Lasting { return Lasting{} }

// Unasked implements [Subject].
func (o Other) Unasked() string { return "" }

// Complete implements [Subject].
func (o Other) Complete(bool) Subject { return o }

// Name implements [Subject].
func (o Other) Name() string { return "a request" }

// Whole implements [Subject].
func (o Other) Whole() []string { return nil }

// Meta implements [Subject].
func (o Other) Meta() map[string]any { return nil }

// Codex implements [Subject].
func (o Other) Codex() *Codex { return nil }

// Event implements [Subject].
func (o Other) Event() protocol.EventMsg { return nil }

// Show implements [Subject].
func (o Other) Show(v View) { v.Message() }

// Question implements [Subject].
func (o Other) Question(_, _ string) *elicit.Question {
	asked := *o.Ask
	return &asked
}
