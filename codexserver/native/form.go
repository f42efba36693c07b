package native

import (
	"encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/outputschema"
)

// form is the JSON schema of a turn's last message.
type form struct {
	raw       json.RawMessage
	check     *outputschema.Schema
	corrected bool // the model was asked for a correction
}

// newForm returns the form of a schema, nil without one.
func newForm(schema json.RawMessage) (*form, error) {
	if schema == nil {
		return nil, nil
	}
	check, err := outputschema.Compile(schema)
	if err != nil {
		return nil, fmt.Errorf("the output schema: %w", err)
	}
	return &form{raw: schema, check: check}, nil
}

const (
	correctionHead = "<output_schema>"
	correction     = correctionHead + "\nYour answer does not fit the JSON schema that it has to follow: %v\nWrite the whole answer again: only JSON that follows the schema, with nothing around it.\n</output_schema>"
)

// requestCorrection adds a message to the history when the model's answer does not fit
// the schema, and reports whether it did; the model then answers again. It does so once in
// a turn.
func (t *turn) requestCorrection() bool {
	if t.form == nil || t.form.corrected || t.answer.cut != "" && t.answer.cut != model.CutEmpty || !t.inbox.empty() {
		return false
	}
	_, err := t.form.check.Check(t.answer.text)
	if err == nil {
		return false
	}
	t.form.corrected = true
	t.conv.record(userMessage(fmt.Sprintf(correction, err)))
	t.conv.emit(protocol.BackgroundEvent{Message: fmt.Sprintf("the answer does not fit the output schema (%v); the model was asked to correct it", err)})
	return true
}
