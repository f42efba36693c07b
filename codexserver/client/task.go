package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/mcpcall"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Task is a turn to run. Only Prompt is required. A zero field means the server's default.
type Task struct {
	// Prompt is the task, or the next message of the conversation Thread.
	Prompt string `json:"prompt"`
	// Thread is the id of the conversation to continue. Default: a new one. The fields from
	// Cwd to Worktree are for new conversations only.
	Thread string `json:"threadId,omitzero"`

	// Cwd is the folder to work in.
	Cwd string `json:"cwd,omitzero"`
	// Model is the model.
	Model string `json:"model,omitzero"`
	// Approvals says what is asked.
	Approvals protocol.ApprovalPolicy `json:"approval-policy,omitzero"`
	// Sandbox says what commands may do.
	Sandbox protocol.SandboxMode `json:"sandbox,omitzero"`
	// Worktree makes the conversation work in a new git worktree. The result names its folder and
	// its branch in [Result].Notes and in [protocol.TurnResult].Worktree.
	Worktree bool `json:"worktree,omitzero"`
	// Schema is the JSON schema of the answer, see [protocol.TurnResult].Output.
	Schema json.RawMessage `json:"output-schema,omitzero"`
	// Arguments are further arguments of the tool codex or codex-reply, such as budget.
	Arguments map[string]any `json:",embed"`

	Watch `json:"-"`
}

// Review is a review to run, see [Client.Review].
type Review struct {
	// Target is what to review: uncommitted, base or commit.
	Target string `json:"target"`
	// Branch is the branch for the target base, Commit the commit for the target commit.
	Branch string `json:"branch,omitzero"`
	Commit string `json:"commit,omitzero"`
	// Instructions say what to look at above all.
	Instructions string `json:"instructions,omitzero"`
	// Cwd is a folder in the repository.
	Cwd string `json:"cwd,omitzero"`

	Watch `json:"-"`
}

// Watch has functions that are called while a turn runs, on the goroutine of the method that
// runs it. They may be slow; if one panics, the turn is interrupted. Nil ignores.
type Watch struct {
	// Event is called with each event, in order. Without Started, Event keeps the turn from
	// becoming a task: tasks have no events.
	Event func(Event)
	// Started is called with the id of the task, if the turn becomes one.
	Started func(task string)
}

// Event is an event of a turn.
type Event struct {
	// Msg is the event; a [protocol.RawEvent] if its type is not known.
	Msg protocol.EventMsg
	// Raw is the event as it arrived.
	Raw json.RawMessage
	// Thread is the conversation of the event: a call with attempts has several. It is "" before that has begun.
	Thread string
}

// Run runs a turn and waits for its end. The end of ctx interrupts the turn. The result then
// has the conversation if that has begun, and the error is the cause of ctx.
func (c *Client) Run(ctx context.Context, t Task) (Result, error) {
	tool, said := "codex", t
	if t.Thread != "" {
		tool, said = "codex-reply", Task{Prompt: t.Prompt, Thread: t.Thread, Schema: t.Schema, Arguments: t.Arguments}
	}
	return c.turn(ctx, &turn{tool: tool, thread: t.Thread, watch: &t.Watch, tasks: t.tasks()}, said)
}

// Review asks for a review of changes in a repository and waits for its end. A review changes
// nothing and asks no questions.
func (c *Client) Review(ctx context.Context, r Review) (Result, error) {
	return c.turn(ctx, &turn{tool: "codex-review", watch: &r.Watch, tasks: r.tasks()}, r)
}

// Resume waits for the result of the task with an id, as [Client.Run] does. The task may be one
// of an earlier client or an earlier server: one whose server has ended has a result that says
// so. If the server does not know the task, the error is a [*LostError].
func (c *Client) Resume(ctx context.Context, task string, w Watch) (Result, error) {
	return c.turn(ctx, &turn{tool: "codex", watch: &w, id: task}, nil)
}

// tasks reports whether the turn may become a task.
func (w *Watch) tasks() bool { return w.Started != nil || w.Event == nil }

// turn is a turn in progress, or the call of a tool that begins none. Its goroutine is that of the method.
type turn struct {
	tool  string
	tasks bool
	calm  bool // the call may be sent twice
	watch *Watch

	thread string          // "" until it is known
	id     string          // of the task, or ""
	runs   map[string]bool // the conversations that work, as far as the events say
}

// turn runs a turn to its end.
func (c *Client) turn(ctx context.Context, t *turn, arguments any) (Result, error) {
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return Result{}, err
	}
	defer leave()
	t.runs = map[string]bool{}
	answer, err := c.await(ctx, t, arguments, &mcpcall.Call{
		Tasks: t.tasks, Notify: t.notified, Open: func() bool { return len(t.runs) > 0 }, Started: t.started,
	})
	switch {
	case err == nil:
		r, err := turnResult(answer)
		r.Task = t.id
		return r, err
	case errors.Is(err, mcpcall.ErrCancelled):
		return Result{TurnResult: protocol.TurnResult{ThreadID: t.thread, Status: protocol.StatusAborted}, Task: t.id,
			Answer: "the task was cancelled"}, nil
	}
	return Result{TurnResult: protocol.TurnResult{ThreadID: t.thread}, Task: t.id}, err
}

// await makes the call and waits for the answer. If the connection ends, it continues with the task, if
// there is one.
func (c *Client) await(ctx context.Context, t *turn, arguments any, call *mcpcall.Call) (json.RawMessage, error) {
	encoded, err := jsonv2.Marshal(arguments, jsontext.AllowInvalidUTF8(true), jsonv2.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("client: arguments: %w", err)
	}
	call.Tool, call.Arguments = t.tool, json.RawMessage(encoded)
	for n := 0; ; n++ {
		s, err := c.connected(ctx)
		switch {
		case err != nil && n > 0 && ctx.Err() == nil && !t.calm:
			return nil, &LostError{t.thread, t.id, err}
		case err != nil:
			return nil, err
		}
		began := time.Now()
		var raw json.RawMessage
		if t.id != "" {
			raw, err = s.Task(ctx, t.id, call)
		} else {
			raw, err = s.Call(ctx, call)
		}
		unknown, sent := lost(err)
		var poll *mcpcall.PollError
		switch {
		case ctx.Err() != nil && err != nil:
			return nil, context.Cause(ctx)
		case !unknown && !errors.As(err, &poll):
			return raw, err // a result, or the server's error
		case t.id == "" && sent && !t.calm:
			return nil, &LostError{t.thread, "", err}
		case poll != nil && poll.Answered && time.Since(began) > time.Minute: // it was connected for a while
			n = 0
		case t.id == "" && n == tries:
			return nil, err
		case !unknown, n == tries:
			return nil, &LostError{t.thread, t.id, err}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// started notes the task that the turn has become. The ids of the server's tasks begin with
// that of the conversation.
func (t *turn) started(task string) {
	t.id = task
	if thread, _, ok := strings.Cut(task, "."); ok && t.thread == "" {
		t.thread = thread
	}
	if t.watch.Started != nil {
		t.watch.Started(task)
	}
}

// notified handles a notification of the call.
func (t *turn) notified(method string, params json.RawMessage) {
	var p struct {
		Msg  json.RawMessage `json:"msg"`
		Meta struct {
			Thread string `json:"threadId"`
		} `json:"_meta"`
	}
	if method != "codex/event" || jsonv2.Unmarshal(params, &p, jsontext.AllowInvalidUTF8(true)) != nil {
		return
	}
	msg, err := protocol.ParseEvent(p.Msg)
	if err != nil {
		return
	}
	switch m := msg.(type) {
	case protocol.SessionConfigured:
		t.thread = m.SessionID
	case protocol.TaskStarted:
		t.runs[p.Meta.Thread] = true
	case protocol.TaskComplete, protocol.TurnAborted, protocol.ShutdownComplete:
		delete(t.runs, p.Meta.Thread)
	}
	if t.watch.Event != nil {
		t.watch.Event(Event{msg, p.Msg, p.Meta.Thread})
	}
}
