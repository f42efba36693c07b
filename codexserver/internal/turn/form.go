package turn

import (
	stdjson "encoding/json"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/go-json-experiment/json/jsontext"
)

// form is what becomes of the form of an answer.
type form struct {
	work    Said  // what the model had said when its work was done
	missing error // why it did not write that again, although it was asked
}

// fit returns an answer as JSON, or why it does not fit a schema.
func fit(schema stdjson.RawMessage, answer string) (jsontext.Value, error) {
	s, err := outputschema.Compile(schema) // as before the turn
	if err != nil {
		return nil, err
	}
	return s.Check(answer)
}

// Forming returns why the answer does not fit a schema. The model is asked to write it again then, until [Turn.Formed]. It
// returns nil if the answer fits, or if it was cut off, so that the work may not be done.
func (t *Turn) Forming(schema stdjson.RawMessage) (fault error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.answer.Lacks != "" && t.answer.Lacks != protocol.EmptyAnswer {
		return nil
	}
	if _, fault = fit(schema, t.answer.Text); fault != nil {
		t.form = form{work: t.answer.Said}
	}
	return fault
}

// Formed records that the model was asked to write its answer again, with the error of [engine.Former] or of the turn's
// context. It reports whether the model did. Else the answer is the one with which the work was done.
func (t *Turn) Formed(err error) (whole bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if lacks := t.answer.Lacks; err == nil && lacks != "" {
		err = errors.New("the answer is incomplete: " + lacks)
	}
	if err != nil {
		t.answer.Said, t.form.missing = t.form.work, err
		t.answer.coming.Reset()
	}
	return err == nil
}

// output puts the answer of a turn that ends with err into the result as JSON. It reports whether it has the form that the
// caller wants; a remark says why not.
func (t *Turn) output(result *protocol.TurnResult, err error) bool {
	if missing := t.form.missing; missing != nil {
		why := missing.Error()
		if abort, is := errors.AsType[*engine.AbortError](missing); is {
			why = abortCause(abort)
		}
		why = plain.Short(why, plain.MaxWords)
		t.remark("The work is done, and its answer is not in the form that was asked for: " + why + ".")
		return t.Order.Read != nil // which takes other forms
	}
	if err != nil || t.Order.Schema == nil {
		return true
	}
	var fault error
	if result.Output, fault = fit(stdjson.RawMessage(t.Order.Schema), t.answer.Text); fault != nil {
		t.remark("The answer does not fit output-schema: " + fault.Error())
	}
	return fault == nil
}
