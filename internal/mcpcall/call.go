package mcpcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// Call is a call of a tool. Its functions run on the goroutine of [Session.Call]; a panic of one
// cancels the call.
type Call struct {
	// Tool and Arguments are those of tools/call.
	Tool      string
	Arguments json.RawMessage
	// Tasks declares that the result may be a task.
	Tasks bool
	// Started is called with the id of the task, if the call becomes one. Nil ignores it.
	Started func(task string)
	// Notify is called with the server's notifications that name the call, in order,
	// and before [Session.Call] returns. Nil ignores them.
	Notify func(method string, params json.RawMessage)
	// Open reports whether the server still works on a call that was cancelled, as far as
	// its notifications say. [Session.Call] then continues with them for up to
	// [Options].Farewell. Nil means no.
	Open func() bool
}

const (
	// maxRounds is how many answers with questions a call may have. Other clients take 9.
	maxRounds = 64
	// maxQuestions is how many questions may be open at a time.
	maxQuestions = 256
	// maxState bounds what the server keeps in the client, in bytes: servers send tokens, or a
	// call's arguments. maxName bounds the ids of its tasks and the keys of its questions.
	maxState, maxName = 1 << 20, 1 << 10
	// goodbye bounds the messages that cancel what a call began.
	goodbye = 5 * time.Second
)

// running is a call in progress.
type running struct {
	s   *Session
	c   *Call
	box *inbox
}

func (s *Session) begin(c *Call) (r *running, end func()) {
	r = &running{s: s, c: c, box: newInbox(s.o.MaxMessage)}
	return r, func() { close(r.box.over) }
}

// round is an answer to tools/call with questions.
type round struct {
	InputRequests map[string]inputRequest `json:"inputRequests"`
	RequestState  jsontext.Value          `json:"requestState"` // text, sent back as it is
}

type inputRequest struct {
	Method string         `json:"method"`
	Params jsontext.Value `json:"params"`
}

// Call calls a tool and returns its result, a CallToolResult. The end of ctx cancels the call;
// the error is then its cause. It ends a task too, unless the cause is [ErrLeave].
//
// An error of the server is a [*jsonrpc.Error]. After [jsonrpc.ErrClosed] it is not known what
// the server has done. A failure to poll a task is a [*PollError].
func (s *Session) Call(ctx context.Context, c *Call) (json.RawMessage, error) {
	r, end := s.begin(c)
	defer end()
	ctx, cancel := context.WithCancel(ctx) // for a panic
	defer cancel()
	params := map[string]any{"name": c.Tool}
	if c.Arguments != nil {
		params["arguments"] = c.Arguments
	}
	for range maxRounds {
		raw, err := r.send(ctx, params)
		if err != nil || !s.modern {
			return raw, err
		}
		var a struct {
			ResultType string `json:"resultType"`
		}
		if err := decode(c.Tool, raw, &a); err != nil {
			return nil, err
		}
		switch a.ResultType {
		case "", "complete":
			return raw, nil
		case "task":
			var t task
			if err := decode(c.Tool, raw, &t); err != nil {
				return nil, err
			}
			if t.ID == "" || len(t.ID) > maxName || !c.Tasks {
				return nil, fmt.Errorf("%s: %w: an unexpected task, with an id of %d bytes", c.Tool, ErrAnswer,
					len(t.ID))
			}
			return r.poll(ctx, t, c.Started)
		case "input_required":
			if err := r.answerRound(ctx, raw, params); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("%s: %w: the result type %q", c.Tool, ErrAnswer, Brief(a.ResultType))
		}
	}
	return nil, fmt.Errorf("%s: %w: it asked %d times", c.Tool, ErrAnswer, maxRounds)
}

// send sends tools/call and returns the answer. Meanwhile it handles notifications.
func (r *running) send(ctx context.Context, params map[string]any) (raw json.RawMessage, err error) {
	if r.s.modern {
		params["_meta"] = r.s.metadata(r.c.Tasks)
	}
	if r.s.Over() {
		return nil, ErrUnsent
	}
	var call *jsonrpc.Call
	defer r.s.listen(r.box, func() string {
		call = r.s.peer.Start(ctx, mcptypes.ToolsCall.Name(), params)
		return call.ID().String()
	})()
	for done := false; !done; {
		select {
		case <-call.Done():
			done = true
		case <-r.box.news:
		}
		if err := r.read(); err != nil {
			return nil, err
		}
	}
	err = r.s.closed(call.Result(&raw))
	if err != nil && ctx.Err() != nil && !errors.Is(err, jsonrpc.ErrClosed) {
		err = context.Cause(ctx)
		if !errors.Is(err, ErrLeave) {
			r.farewell()
		}
	}
	return raw, err
}

// farewell handles the notifications of a cancelled call until it has ended. Those that were on
// the way arrive before the answer to a ping.
func (r *running) farewell() {
	if r.c.Open == nil || r.s.o.Farewell <= 0 {
		return
	}
	late, stop := context.WithTimeout(context.Background(), r.s.o.Farewell)
	defer stop()
	method, params := mcptypes.Ping.Name(), any(nil)
	if r.s.modern {
		method, params = modern.ServerDiscover.Name(), map[string]any{"_meta": r.s.metadata(false)}
	}
	echo := r.s.peer.Start(late, method, params).Done()
	for echo != nil || r.c.Open() {
		select {
		case <-r.box.news:
		case <-echo:
			echo = nil
		case <-r.s.peer.Done():
			_ = r.read()
			return
		case <-late.Done():
			return
		}
		if r.read() != nil {
			return
		}
	}
}

// read handles the notifications that have arrived.
func (r *running) read() error {
	notes, err := r.box.take()
	for _, n := range notes {
		if n.reached != nil {
			close(n.reached)
		} else if r.c.Notify != nil {
			r.c.Notify(n.method, n.params)
		}
	}
	return err
}

// answerRound asks the questions of an answer, and sets the params of the next request.
func (r *running) answerRound(ctx context.Context, raw json.RawMessage, params map[string]any) error {
	var asked round
	if err := decode(r.c.Tool, raw, &asked); err != nil {
		return err
	}
	if err := bounded(r.c.Tool, asked.InputRequests); err != nil {
		return err
	}
	state := asked.RequestState
	switch {
	case len(state) > maxState:
		return fmt.Errorf("%s: %w: a requestState of %d bytes", r.c.Tool, ErrAnswer, len(state))
	case len(state) > 0 && state.Kind() != '"' && state.Kind() != 'n':
		return fmt.Errorf("%s: %w: a requestState that is no text", r.c.Tool, ErrAnswer)
	}
	answers, err := r.answerAll(ctx, asked.InputRequests)
	params["inputResponses"] = answers
	delete(params, "requestState")
	if state.Kind() == '"' {
		params["requestState"] = state
	}
	if err != nil {
		r.refuse(ctx, params, asked.InputRequests)
	}
	return err
}

// bounded fails if there are more questions than a person would be asked, or their keys are long.
func bounded(method string, requests map[string]inputRequest) error {
	if n := len(requests); n > maxQuestions {
		return fmt.Errorf("%s: %w: %d questions at a time", method, ErrAnswer, n)
	}
	for key := range requests {
		if len(key) > maxName {
			return fmt.Errorf("%s: %w: a question with a key of %d bytes", method, ErrAnswer, len(key))
		}
	}
	return nil
}

// answerAll asks the questions of a round at the same time. After an error no one may answer.
func (r *running) answerAll(ctx context.Context, requests map[string]inputRequest) (map[string]json.RawMessage, error) {
	if len(requests) == 0 { // the server only wants the state back
		return nil, ctx.Err()
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]json.RawMessage{}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for key, request := range requests {
		all.Go(func() {
			given, err := r.answer(ctx, request)
			if err != nil {
				cancel(err)
			}
			mu.Lock()
			defer mu.Unlock()
			answers[key] = given
		})
	}
	all.Wait()
	return answers, context.Cause(ctx)
}

var (
	declined  = json.RawMessage(`{"action":"decline"}`)
	cancelled = json.RawMessage(`{"action":"cancel"}`)
)

// answer answers a request in a result. It fails only if ctx ends or the client has no such
// method.
func (r *running) answer(ctx context.Context, q inputRequest) (json.RawMessage, error) {
	switch q.Method {
	case mcptypes.ElicitationCreate.Name():
	case mcptypes.RootsList.Name():
		return json.RawMessage(`{"roots":[]}`), nil
	default:
		return nil, fmt.Errorf("%s: %w: it requests %q", r.c.Tool, ErrAnswer, Brief(q.Method))
	}
	a, err := r.s.askUntil(ctx, json.RawMessage(q.Params))
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return declined, nil
	}
	return a, nil
}

// refuse cancels the questions of a round after ctx has ended, so that the server does not wait
// for the answers. No request is open then that could be cancelled.
func (r *running) refuse(ctx context.Context, params map[string]any, requests map[string]inputRequest) {
	answers := map[string]json.RawMessage{}
	for key := range requests {
		answers[key] = cancelled
	}
	params["inputResponses"], params["_meta"] = answers, r.s.metadata(r.c.Tasks)
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer stop()
	_ = r.s.peer.Call(ctx, mcptypes.ToolsCall.Name(), params, nil) // best effort: otherwise they time out
}
