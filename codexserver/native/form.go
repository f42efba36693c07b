package native

import (
	"context"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/cut"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// formHead begins the message of the server about the form of an answer.
const formHead = "<output_schema>"

// Form implements [engine.Former] by one request, which has the schema and forbids the use of the tools.
func (c *conversation) Form(ctx context.Context, in protocol.TurnInput) error {
	if in.Key != "" {
		in.Key = cut.FormKey(in.Key)
	}
	return c.turn(ctx, in, true)
}

// takeForm takes the answer from a response that was to have no calls. None of those that it has runs, and no later request
// has them: they would have no output there.
func (t *turn) takeForm(ctx context.Context, resp *model.Response) error {
	called := ""
	resp.Items = slices.DeleteFunc(resp.Items, func(item protocol.ResponseItem) bool {
		call, is := model.CallOf(item)
		if is {
			called = plain.Short(call.Function().Name, plain.MaxName)
		}
		return is
	})
	if _, err := t.obey(ctx, resp); err != nil {
		return err
	}
	t.take(resp)
	t.answer.called = called
	return nil
}
