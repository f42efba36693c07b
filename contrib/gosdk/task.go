package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Task is the task of some [Work], which may ask by it. It is safe for concurrent use.
type Task struct {
	all     *Tasks
	user    string
	client  capabilities // of the request that began it
	created time.Time
	stop    context.CancelCauseFunc

	// The rest is for [Tasks.use].
	is   about
	end  *end // nil until the end
	keys int  // how many keys of questions were ever used
	open map[string]*question
}

// question waits for its answer.
type question struct {
	asks   mcp.InputRequest
	answer chan json.RawMessage // takes one
}

var (
	// ErrUnsupported means that the client of the task cannot be asked that.
	ErrUnsupported = errors.New("the client of the task does not declare that it can be asked this")
	// ErrAnswer means that the client's answer is not one to the question.
	ErrAnswer = errors.New("the client's answer cannot be read")
)

// ID returns the id of the task, which clients poll.
func (k *Task) ID() string { return k.is.ID }

// Say sets the message that clients show while the work goes on.
func (k *Task) Say(message string) {
	k.all.use(func(*table) {
		if k.end == nil {
			k.is.StatusMessage, k.is.LastUpdatedAt = message, stamp()
		}
	})
}

// Elicit asks the user of the client, and waits for the answer. Questions that are asked at the
// same time are open at the same time. The content of an accepted form fits its schema; otherwise
// the error wraps [ErrAnswer].
func (k *Task) Elicit(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	a, err := k.Ask(ctx, p)
	if err != nil {
		return nil, err
	}
	r, ok := a.(*mcp.ElicitResult)
	if !ok {
		return nil, fmt.Errorf("%w: it is no answer to an elicitation", ErrAnswer)
	}
	switch r.Action {
	case "decline", "cancel":
		return &mcp.ElicitResult{Action: r.Action}, nil
	case "accept":
		return r, checkContent(p.RequestedSchema, r.Content)
	}
	return nil, fmt.Errorf("%w: the action %.20q", ErrAnswer, r.Action)
}

// checkContent checks the content of a form.
func checkContent(schema any, content map[string]any) error {
	if schema == nil {
		return nil
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return fmt.Errorf("gosdk: the schema of a question: %w", err)
	}
	s := &jsonschema.Schema{}
	if err := json.Unmarshal(raw, s); err != nil {
		return fmt.Errorf("gosdk: the schema of a question: %w", err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return fmt.Errorf("gosdk: the schema of a question: %w", err)
	}
	if content == nil {
		content = map[string]any{}
	}
	if err := resolved.Validate(content); err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return nil
}

// Ask sends the client a request, such as [*mcp.ListRootsParams], and waits for its answer. The
// error is [ErrUnsupported] if the client does not declare that it answers such requests.
func (k *Task) Ask(ctx context.Context, p mcp.InputRequest) (mcp.InputResponse, error) {
	if !k.client.answer(p) {
		return nil, ErrUnsupported
	}
	q, key, ended := &question{p, make(chan json.RawMessage, 1)}, "", false
	k.all.use(func(*table) {
		if ended = k.end != nil; ended {
			return
		}
		k.keys++ // a key is never used twice
		key = fmt.Sprintf("q%d", k.keys)
		k.open[key] = q
		k.is.Status, k.is.LastUpdatedAt = modern.TaskStatusInputRequired, stamp()
	})
	if ended {
		return nil, errors.New("gosdk: the task has ended")
	}
	select {
	case raw := <-q.answer:
		var all mcp.InputResponseMap
		quoted, err := json.Marshal(map[string]json.RawMessage{key: raw})
		if err == nil {
			err = json.Unmarshal(quoted, &all)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
		}
		return all[key], nil
	case <-ctx.Done():
		k.all.use(func(*table) { k.close(key) })
		return nil, context.Cause(ctx)
	}
}

// answer reports whether the client answers a request.
func (c capabilities) answer(p mcp.InputRequest) bool {
	switch p := p.(type) {
	case *mcp.ElicitParams:
		if p.URL != "" {
			return c.Elicitation["url"] != nil
		}
		return c.Elicitation != nil && (len(c.Elicitation) == 0 || c.Elicitation["form"] != nil)
	case *mcp.ListRootsParams:
		return c.Roots != nil
	default:
		return c.Sampling != nil
	}
}

// close removes a question from those that are open.
func (k *Task) close(key string) {
	delete(k.open, key)
	if k.end == nil {
		k.is.LastUpdatedAt = stamp()
		if len(k.open) == 0 {
			k.is.Status = modern.TaskStatusWorking
		}
	}
}
