package thread

import (
	"context"
	"errors"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/text"
)

// form has the model write its answer again if that does not fit the schema, when the work is done. It returns the messages
// that came meanwhile, with which the work goes on, nil if the turn is over. An error aborts the turn. The work stays
// done whatever becomes of its form: the result says what is missing.
func (t *Thread) form(
	ctx context.Context, q *seat, former engine.Former, in protocol.TurnInput,
) ([]protocol.InputItem, error) {
	fault := q.Turn.Forming([]byte(in.OutputSchema))
	if fault == nil {
		return t.letters(q, false), nil
	}
	const words = "the answer does not fit the output schema (%v); the model was asked to correct it"
	t.Emit(protocol.BackgroundEvent{Message: fmt.Sprintf(words, fault)})
	t.mu.Lock()
	work := q.checks.end
	q.checks.forming = true
	t.mu.Unlock()
	err := context.Cause(ctx)
	if err == nil {
		in.Items, in.Continue, in.Effort, in.Again = protocol.TextInput(formWords(fault)), nil, "", true
		err = former.Form(ctx, in)
	} else {
		t.Emit(protocol.TurnAborted{Reason: protocol.AbortInterrupted})
	}
	cause := context.Cause(ctx)
	if err != nil && cause != nil {
		err = cause
	}
	whole := q.Turn.Formed(err)
	stopped := err != nil && cause != nil && !errors.As(cause, new(*turn.SpentError))
	t.mu.Lock()
	q.checks.forming = false
	if !whole && !stopped { // to clients the turn ends as the work did
		q.checks.end = work
	}
	t.mu.Unlock()
	switch {
	case whole:
		return t.letters(q, false), nil
	case !stopped:
		return nil, nil
	case !errors.As(err, new(*engine.AbortError)):
		err = &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: err}
	}
	return nil, err
}

const formMessage = "The work is done. Your answer does not fit the JSON schema that it has to follow: %v\n" +
	"Write the whole answer again: only JSON that follows the schema, with nothing around it. Call no tool."

// formWords says to the model what is wrong with its answer.
func formWords(fault error) string {
	return text.Tagged("output_schema", fmt.Sprintf(formMessage, fault))
}
