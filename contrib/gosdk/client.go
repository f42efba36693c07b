package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Caller lets the calls of a client become tasks: [mcp.ClientSession.CallTool] polls a task and
// returns its result. The handlers of the client answer the questions of the task. The end of the
// call's context cancels the task.
//
// The SDK drops what it does not know of an answer, so the client must be connected by a
// [Transport], or over HTTP with [HTTPClient]. Without one of them a call that becomes a task fails.
type Caller struct {
	// Started is called with the id of each task, on the goroutine of its call. Nil ignores it.
	Started func(session *mcp.ClientSession, task string)
	// Say is called with each new message about a task. Nil ignores it.
	Say func(task, message string)

	receive mcp.MethodHandler // of the client
}

// ErrCancelled means that a task was cancelled.
var ErrCancelled = errors.New("the task was cancelled")

// The bounds of a client: the interval between two polls, how many questions may be open, and how
// long the cancellation of a task may take.
const (
	fastest, slowest = 20 * time.Millisecond, 30 * time.Second
	usual            = 2 * time.Second
	maxQuestions     = 256
	goodbye          = 5 * time.Second
)

// Install makes the calls of a client tasks. It must be called once, before the client connects, with
// a client of its own.
func (c *Caller) Install(client *mcp.Client) error {
	err := errors.Join(
		mcp.AddSendingCustomMethod[*taskParams, *polled](client, methodGet),
		mcp.AddSendingCustomMethod[*answerParams, *emptyResult](client, methodUpdate),
		mcp.AddSendingCustomMethod[*taskParams, *emptyResult](client, methodCancel),
	)
	if err != nil {
		return err
	}
	client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		c.receive = next
		return next
	})
	client.AddSendingMiddleware(c.send)
	return nil
}

// answerParams are the params of tasks/update.
type answerParams struct {
	mcp.ParamsBase
	TaskID         string                       `json:"taskId"`
	InputResponses map[string]mcp.InputResponse `json:"inputResponses"`
}

// polled is the answer to tasks/get. Its questions are read one by one.
type polled struct {
	mcp.ResultBase
	about
	PollIntervalMs *float64                   `json:"pollIntervalMs"`
	InputRequests  map[string]json.RawMessage `json:"inputRequests"`
	end
}

// send declares the extension in calls, and polls what is answered with a task.
func (c *Caller) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch method {
		case methodCall, methodGet, methodUpdate, methodCancel:
			if err := declare(req.GetParams()); err != nil {
				return nil, err
			}
		}
		r, err := next(ctx, method, req)
		answer, ok := r.(*mcp.CallToolResult)
		session, own := req.GetSession().(*mcp.ClientSession)
		if err != nil || !ok || !own {
			return r, err
		}
		id, err := taskOf(answer)
		if err != nil || id == "" {
			return r, err
		}
		p := &poll{c: c, session: session, id: id, asked: map[string]*asking{}, answers: make(chan answered)}
		return p.run(ctx)
	}
}

// declare adds the extension to the capabilities of a request of MCP 2026-07-28.
func declare(p mcp.Params) error {
	meta := p.GetMeta()
	if meta[mcp.MetaKeyClientCapabilities] == nil {
		return nil
	}
	raw, err := json.Marshal(meta[mcp.MetaKeyClientCapabilities])
	if err != nil {
		return err
	}
	var all map[string]any
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	extensions, _ := all["extensions"].(map[string]any)
	if extensions == nil {
		extensions = map[string]any{}
	}
	extensions[Extension] = map[string]any{}
	all["extensions"] = extensions
	own := maps.Clone(meta)
	own[mcp.MetaKeyClientCapabilities] = all
	p.SetMeta(own)
	return nil
}

// metaTask is where [Transport] and [HTTPClient] put the id of a task in an answer to tools/call.
const metaTask = "io.github.codexmcp/task"

// taskOf returns the id of the task that answers a call, or "".
func taskOf(r *mcp.CallToolResult) (string, error) {
	head := *r
	head.Content, head.StructuredContent, head.InputRequests = nil, nil, nil
	raw, err := json.Marshal(&head) // the only way to the type of the result
	if err != nil {
		return "", err
	}
	var kind struct {
		ResultType string `json:"resultType"`
	}
	if err := json.Unmarshal(raw, &kind); err != nil || kind.ResultType != "task" {
		return "", err
	}
	id, _ := r.Meta[metaTask].(string)
	if id == "" {
		return "", errors.New("gosdk: a call has become a task that cannot be read: the client needs gosdk.Transport " +
			"or gosdk.HTTPClient")
	}
	return id, nil
}

// poll polls a task.
type poll struct {
	c       *Caller
	session *mcp.ClientSession
	id      string
	said    string
	asked   map[string]*asking // the open questions
	answers chan answered
}

// asking is a question that a handler of the client answers.
type asking struct {
	raw      string
	withdraw context.CancelFunc
	answer   mcp.InputResponse // nil until it is answered
}

type answered struct {
	key string
	*asking
	response mcp.InputResponse
	err      error
}

// run polls until the task has ended. It cancels the task if it fails before.
func (p *poll) run(ctx context.Context) (_ mcp.Result, err error) {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	ended := false
	defer func() {
		if !ended { // also after a panic
			p.abandon(ctx)
		}
	}()
	if p.c.Started != nil {
		p.c.Started(p.session, p.id)
	}
	wait := fastest
	for {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case a := <-p.answers:
			timer.Stop()
			if p.asked[a.key] != a.asking { // it was withdrawn
				break
			}
			if a.err != nil {
				return nil, a.err
			}
			a.asking.answer = a.response
			if err := p.update(ctx, map[string]mcp.InputResponse{a.key: a.response}); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
		now, err := mcp.CallCustomMethod[*taskParams, *polled](ctx, p.session, methodGet, &taskParams{TaskID: p.id})
		switch {
		case err != nil:
			return nil, fmt.Errorf("task %s: %w", p.id, err)
		case now.ID != p.id:
			return nil, errors.New("gosdk: tasks/get answers about another task")
		}
		if p.c.Say != nil && now.StatusMessage != "" && now.StatusMessage != p.said {
			p.said = now.StatusMessage
			p.c.Say(p.id, p.said)
		}
		switch now.Status {
		case modern.TaskStatusWorking, modern.TaskStatusInputRequired:
			if err := p.ask(ctx, asking, now.InputRequests); err != nil {
				return nil, err
			}
			wait = interval(now.PollIntervalMs)
		case modern.TaskStatusCompleted:
			ended = true
			r := &mcp.CallToolResult{}
			if err := json.Unmarshal(now.Result, r); err != nil {
				return nil, fmt.Errorf("task %s: its result: %w", p.id, err)
			}
			return r, nil
		case modern.TaskStatusFailed:
			ended = true
			if now.Error == nil {
				return nil, fmt.Errorf("task %s has failed without an error", p.id)
			}
			return nil, &jsonrpc.Error{Code: now.Error.Code, Message: now.Error.Message, Data: now.Error.Data}
		case modern.TaskStatusCancelled:
			ended = true
			return nil, ErrCancelled
		default:
			return nil, fmt.Errorf("task %s: the status %.50q", p.id, now.Status)
		}
	}
}

func interval(ms *float64) time.Duration {
	if ms == nil {
		return usual
	}
	return max(time.Duration(min(max(*ms, 0), slowest.Seconds()*1000)*float64(time.Millisecond)), fastest)
}

// ask asks the new ones of the open questions, and withdraws those that are not open any more. An
// answer that has not arrived is sent again.
func (p *poll) ask(ctx, asking context.Context, open map[string]json.RawMessage) error {
	if len(open) > maxQuestions {
		return fmt.Errorf("gosdk: the task %s has %d questions at a time", p.id, len(open))
	}
	for key, a := range p.asked {
		if raw, still := open[key]; !still || string(raw) != a.raw {
			a.withdraw()
			delete(p.asked, key)
		}
	}
	lost := map[string]mcp.InputResponse{}
	for key, raw := range open {
		if a := p.asked[key]; a != nil {
			if a.answer != nil {
				lost[key] = a.answer
			}
			continue
		}
		one, withdraw := context.WithCancel(asking)
		a := p.begin(key, string(raw), withdraw)
		go func() {
			r, err := p.c.answer(one, p.session, raw)
			select {
			case p.answers <- answered{key, a, r, err}:
			case <-one.Done():
			}
		}()
	}
	if len(lost) == 0 {
		return nil
	}
	return p.update(ctx, lost)
}

func (p *poll) begin(key, raw string, withdraw context.CancelFunc) *asking {
	a := &asking{raw: raw, withdraw: withdraw}
	p.asked[key] = a
	return a
}

// answer lets a handler of the client answer a question. A failed elicitation is cancelled.
func (c *Caller) answer(
	ctx context.Context, session *mcp.ClientSession, raw json.RawMessage,
) (mcp.InputResponse, error) {
	var all mcp.InputRequestMap
	quoted, err := json.Marshal(map[string]json.RawMessage{"q": raw})
	if err == nil {
		err = json.Unmarshal(quoted, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("gosdk: a question of a task cannot be read: %w", err)
	}
	var r mcp.Result
	switch p := all["q"].(type) {
	case *mcp.ElicitParams:
		r, err = c.receive(ctx, "elicitation/create",
			&mcp.ClientRequest[*mcp.ElicitParams]{Session: session, Params: p})
		if err != nil {
			return &mcp.ElicitResult{Action: "cancel"}, nil
		}
	case *mcp.CreateMessageWithToolsParams:
		r, err = c.receive(ctx, "sampling/createMessage",
			&mcp.ClientRequest[*mcp.CreateMessageWithToolsParams]{Session: session, Params: p})
	case *mcp.ListRootsParams:
		r, err = c.receive(ctx, "roots/list", &mcp.ClientRequest[*mcp.ListRootsParams]{Session: session, Params: p})
	default:
		return nil, errors.New("gosdk: a task asks what the client cannot answer")
	}
	if err != nil {
		return nil, err
	}
	response, ok := r.(mcp.InputResponse)
	if !ok {
		return nil, fmt.Errorf("gosdk: a handler answers a task with %T", r)
	}
	return response, nil
}

func (p *poll) update(ctx context.Context, responses map[string]mcp.InputResponse) error {
	_, err := mcp.CallCustomMethod[*answerParams, *emptyResult](ctx, p.session, methodUpdate,
		&answerParams{TaskID: p.id, InputResponses: responses})
	return err
}

// abandon cancels the task.
func (p *poll) abandon(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer stop()
	// the caller has another error
	_, _ = mcp.CallCustomMethod[*taskParams, *emptyResult](ctx, p.session, methodCancel, &taskParams{TaskID: p.id})
}
