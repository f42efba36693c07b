package gosdk

import (
	"context"
	"errors"

	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// find uses the task of a request. It returns the record of one that is not of this process.
func (t *Tasks) find(ctx context.Context, p *taskParams, do func(*Task)) (*record, error) {
	if !capabilitiesOf(p.Meta).tasks() {
		return nil, lacking()
	}
	user, _ := ctx.Value(userKey{}).(string)
	found := false
	t.use(func(all *table) {
		if k := all.byID[p.TaskID]; k != nil && k.user == user {
			found = true
			do(k)
		}
	})
	if found {
		return nil, nil
	}
	rec, err := t.read(ctx, p.TaskID)
	switch {
	case errors.Is(err, errUnknown), err == nil && rec.User != user:
		return nil, invalid("params/taskId: there is no such task")
	case err != nil:
		t.o.Logger.ErrorContext(ctx, "read a task", "err", err)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the task cannot be read now"}
	}
	return rec, nil
}

func (t *Tasks) get(ctx context.Context, _ *mcp.ServerSession, p *taskParams) (*getResult, error) {
	r := &getResult{ResultType: complete}
	rec, err := t.find(ctx, p, func(k *Task) {
		r.about = k.is
		if k.end != nil {
			r.end = *k.end
		}
		if len(k.open) > 0 {
			r.InputRequests = mcp.InputRequestMap{}
		}
		for key, q := range k.open {
			r.InputRequests[key] = q.asks
		}
	})
	if rec != nil {
		r.about, r.end = rec.About, rec.End
		if r.Status == modern.TaskStatusWorking { // its process has ended
			r.Status, r.Error = modern.TaskStatusFailed,
				&failure{Code: jsonrpc.CodeInternalError, Message: errClosed.Error()}
		}
	}
	return r, err
}

// update takes answers. The first answer to a question counts; what is not open is ignored.
func (t *Tasks) update(ctx context.Context, _ *mcp.ServerSession, p *taskParams) (*emptyResult, error) {
	_, err := t.find(ctx, p, func(k *Task) {
		for key, answer := range p.InputResponses {
			if q := k.open[key]; q != nil {
				k.close(key)
				q.answer <- answer
			}
		}
	})
	return &emptyResult{ResultType: complete}, err
}

// cancel ends the work of a task. One that has ended stays as it is.
func (t *Tasks) cancel(ctx context.Context, _ *mcp.ServerSession, p *taskParams) (*emptyResult, error) {
	_, err := t.find(ctx, p, func(k *Task) { k.stop(errors.New("the client has cancelled the task")) })
	return &emptyResult{ResultType: complete}, err
}
