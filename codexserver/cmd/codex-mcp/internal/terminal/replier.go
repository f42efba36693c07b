package terminal

import (
	"context"
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"
)

// replier takes the reply to a question from the screen's goroutine to that of the question. It
// has room for one.
type replier chan reply

type reply struct {
	result json.RawMessage
	err    error
}

// Reply replies. A question that was withdrawn does not wait.
func (r replier) Reply(result any, err error) {
	one := reply{err: err}
	if err == nil {
		one.result, one.err = jsonv2.Marshal(result)
	}
	r <- one
}

// wait returns the reply.
func (r replier) wait(ctx context.Context) (json.RawMessage, error) {
	select {
	case one := <-r:
		return one.result, one.err
	case <-ctx.Done():
	}
	select {
	case one := <-r: // the user was faster
		return one.result, one.err
	default:
		return nil, context.Cause(ctx)
	}
}
