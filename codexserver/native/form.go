package native

import (
	"encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/internal/outputschema"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// form is what the last message of a turn has to look like.
type form struct {
	raw   json.RawMessage
	check *outputschema.Schema
	told  bool // the model was sent a fault
}

// newForm returns the form that a schema describes, nil without one.
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

// schema is what the provider is sent, nil without a form.
func (f *form) schema() json.RawMessage {
	if f == nil {
		return nil
	}
	return f.raw
}

const (
	correctionHead = "<output_schema>"
	correction     = correctionHead + "\nYour answer does not fit the JSON schema that it has to follow: %v\nWrite the whole answer again, as JSON by the schema and with nothing around it.\n</output_schema>"
)

// corrects informs the model, once in a turn, that its answer does not fit, and reports
// whether it did: the model then answers again. The user judges a second answer.
func (t *turn) corrects(resp *model.Response) bool {
	if t.form == nil || t.form.told || !t.inbox.empty() {
		return false
	}
	answer := ""
	if last := lastMessage(resp.Items); last != nil {
		answer = *last
	}
	_, err := t.form.check.Check(answer)
	if err == nil {
		return false
	}
	t.form.told = true
	t.record(userMessage(fmt.Sprintf(correction, err)))
	t.emit(protocol.BackgroundEvent{Message: fmt.Sprintf("the answer does not fit the output schema (%v); the model is informed and answers again", err)})
	return true
}
