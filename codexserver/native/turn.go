package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/uuid"
)

// turn is a running turn. It sends requests to the model and runs the calls of each
// response, until a response has no calls and the inbox is empty.
//
// One goroutine runs a turn, and holds the conversation's lock use. What others do has a lock of its own: messages
// to the turn wait in its inbox, and a timer reports the text that is coming.
type turn struct {
	conv    *conversation
	tools   *tool.Turn
	id      string // in the conversation's file; "" before the turn is there
	durable bool   // another process may continue the turn
	// compacted is true from a compaction until the history is not full any more.
	compacted bool
	// round is the last response until it becomes part of the history. When the turn is
	// aborted before any call ran, the round is dropped. A call that the turn did not finish has
	// no output then: each request says so.
	round *model.Response
	free  func() // gives back the room of the last response, once it has been read; or nil
	inbox *inbox
	// schema is that of the answer, or nil, to which the model is held if forming is true: it does nothing else then.
	schema  json.RawMessage
	forming bool

	answer   final
	told     bool   // how to call a tool
	inText   string // the tool that a message before called in its text, until the model makes a call
	incoming incoming
}

// Turn implements [engine.Conversation].
func (c *conversation) Turn(ctx context.Context, in protocol.TurnInput) error {
	return c.turn(ctx, in, false)
}

// turn runs a turn, or the form of the last one's answer.
func (c *conversation) turn(ctx context.Context, in protocol.TurnInput, forming bool) error {
	c.use.Lock()
	defer c.use.Unlock()
	if !in.Again {
		c.budget = budget{limits: c.engine.options.Limits, most: in.MaxTokens, begun: time.Now()}
	}
	if limit := c.budget.limits.WallTime; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, c.budget.begun.Add(limit),
			&limitError{what: fmt.Sprintf("it took longer than %v", limit)})
		defer cancel()
	}
	t := &turn{
		conv: c, durable: in.Key != "", inbox: &inbox{ready: make(chan struct{})}, incoming: incoming{conv: c},
		schema: in.OutputSchema, forming: forming,
	}
	if !forming { // which takes no messages
		c.inbox.Store(t.inbox)
	}
	defer t.inbox.close()
	defer t.release()
	_, _ = c.box.Roots(c.now.SandboxPolicy, c.now.Cwd) // records what its commands can write; each fails with the error
	c.host.Emit(protocol.TaskStarted{ModelContextWindow: c.contextWindow()})
	leave, err := c.engine.turns.Take(ctx)
	if err != nil {
		return t.finish(ctx, err)
	}
	defer leave()
	if err := c.engine.claim(c.saved.file); err != nil { // another server has it
		return c.fail(err)
	}
	defer c.release()
	if in.Effort != "" {
		c.now.Effort, c.chosen.Choices.Effort = in.Effort, in.Effort
		if err := c.engine.choices.Put(c.chosen); err != nil {
			return c.fail(err)
		}
	}
	c.running = true
	defer func() {
		c.running = false
		c.checkWrite(c.saved.file.Sync())
	}()
	var over protocol.EventMsg
	if err = c.refresh(); err == nil && in.Continue != nil {
		in.Items, over, err = c.goesOn(in)
	}
	if err != nil {
		return c.fail(err)
	}
	if over != nil {
		return c.endAgain(over)
	}
	c.choose()
	c.inform()
	return t.finish(ctx, t.run(ctx, in))
}

// finish reports how a turn ended.
func (t *turn) finish(ctx context.Context, err error) error {
	c, last := t.conv, &t.answer
	if left := t.inbox.close(); len(left) > 0 {
		t.hear(left)
		c.emit(protocol.BackgroundEvent{Message: fmt.Sprintf(
			"the turn ended before the model read all messages to it; it will read %d in the next turn", len(left))})
	}
	var abort *engine.AbortError
	var limit *limitError
	switch {
	case err == nil:
		end := protocol.TaskComplete{TurnID: t.id, Incomplete: last.incomplete()}
		if last.text != "" {
			end.LastAgentMessage = &last.text
		}
		if err := t.ends(end); err != nil {
			return c.fail(err)
		}
		end.TurnID = ""
		c.emit(end)
		return nil
	case ctx.Err() != nil:
		abort = &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
		if errors.As(abort.Cause, &limit) {
			abort, err = nil, limit
		}
	default:
		errors.As(err, &abort)
	}
	if abort != nil {
		_ = t.ends(protocol.TurnAborted{TurnID: t.id, Reason: abort.Reason}) // it is aborted in any case
		c.emit(protocol.TurnAborted{Reason: abort.Reason})
		return abort
	}
	_ = t.ends(protocol.Error{Message: err.Error()}) // it fails in any case
	return c.fail(err)
}

// fail reports a turn that failed.
func (c *conversation) fail(err error) error {
	c.emit(protocol.Error{Message: err.Error()})
	c.emit(protocol.TaskComplete{})
	return &engine.TurnError{Message: err.Error()}
}

// run is the turn's loop. It leaves the model's last message in t.answer.
func (t *turn) run(ctx context.Context, in protocol.TurnInput) error {
	if err := t.begin(in); err != nil || len(in.Items) == 0 {
		return err
	}
	close(t.inbox.ready) // the history has the turn's own message
	if err := t.awaitServers(ctx); err != nil {
		return err
	}
	now := tool.Context{
		Cwd:            t.conv.now.Cwd,
		ApprovalPolicy: t.conv.now.ApprovalPolicy,
		SandboxPolicy:  t.conv.now.SandboxPolicy,
		Host:           asking{t.conv.host, t},
		Acting:         t.act,
	}
	t.tools = t.conv.box.Turn(now)
	return t.loop(ctx)
}

// loop requests responses of the model and runs their calls until a response has none.
func (t *turn) loop(ctx context.Context) error {
	for {
		t.hearChanges(ctx)
		resp, err := t.respond(ctx)
		if err != nil {
			return err
		}
		if t.forming {
			return t.takeForm(ctx, resp)
		}
		called, err := t.obey(ctx, resp)
		if err != nil {
			return err
		}
		if called {
			t.inText = ""
			continue
		}
		if t.take(resp); !t.requestCall() && t.inbox.done() {
			return nil
		}
		t.answer = final{} // another response follows
	}
}

// inform adds a message to the history when the policies or the folder have changed.
func (c *conversation) inform() {
	if m, ok := environmentMessage(c.now, &c.history.sent, "", nil); ok {
		c.record(m)
	}
	c.history.sent = c.now
}

// begin records the beginning of the turn, which may have a key, and adds the user's message to the history.
func (t *turn) begin(in protocol.TurnInput) error {
	if len(in.Items) == 0 {
		return nil
	}
	message, event, err := readInput(t.conv.now.Cwd, permitted(t.conv.cfg), in.Items)
	if err != nil {
		return err
	}
	if t.id = in.Key; t.id == "" {
		t.id = uuid.NewString()
	}
	t.conv.checkWrite(t.conv.saved.file.Event(protocol.TaskStarted{TurnID: t.id,
		ModelContextWindow: t.conv.contextWindow()}))
	if t.durable {
		// Otherwise another process could continue the turn with looser policies: without a
		// turn's context those of the configuration count.
		t.conv.checkWrite(t.conv.saved.file.TurnContext(t.conv.now))
	}
	t.conv.record(message)
	t.conv.checkWrite(t.conv.saved.file.Event(event))
	return nil
}

// ask requests a response of the model to the history.
func (t *turn) ask(ctx context.Context) (*model.Response, error) {
	t.hear(t.inbox.take())
	t.conv.checkWrite(t.conv.saved.file.TurnContext(t.conv.now))
	t.conv.checkWrite(t.conv.saved.file.Sync())
	if err := t.conv.saved.kept(); err != nil {
		return nil, err
	}
	return t.stream(ctx, "", t.nextRequest)
}

// nextRequest returns the request of [turn.ask] for the provider that answers.
func (t *turn) nextRequest() *model.Request {
	req := &model.Request{
		Model:          t.conv.provider().cfg.Model,
		Instructions:   t.instructions(),
		Items:          t.conv.history.items,
		Tools:          t.offer(),
		SeveralCalls:   t.conv.engine.fileTools(t.conv.cfg),
		Reasoning:      t.conv.reasoning(),
		Verbosity:      t.conv.provider().cfg.Verbosity,
		OutputSchema:   t.schema,
		NoCalls:        t.forming,
		ConversationID: t.conv.ID(),
	}
	if t.conv.chosen.Choices.Effort != "" && !t.conv.away() { // chosen for the configured model
		req.Effort = t.conv.now.Effort
	}
	return req
}

// obey runs the calls of a response and reports whether it had any.
func (t *turn) obey(ctx context.Context, resp *model.Response) (called bool, err error) {
	// a call may lack a part even if it can be read, and providers refuse a history with half a call
	if resp.Cut != "" {
		resp.Items = slices.DeleteFunc(resp.Items,
			func(item protocol.ResponseItem) bool { return messageText(item) == "" })
	}
	if t.round = nil; resp.Items != nil {
		t.round = resp
	}
	var calls []model.Call
	for _, item := range resp.Items {
		if call, ok := model.CallOf(item); ok {
			calls = append(calls, call)
		}
	}
	if len(calls) > 0 {
		if err := t.conv.budget.spent(); err != nil {
			t.commit()
			t.emitChat(resp.Items)
			t.conv.emit(t.conv.meter.report())
			return true, err
		}
	}
	var after []protocol.ResponseItem
	for _, call := range calls {
		result, err := t.call(ctx, call)
		if err != nil {
			if ctx.Err() == nil { // after an interrupt Codex sends turn_aborted alone
				t.conv.emit(t.conv.meter.report())
			}
			return true, err
		}
		t.commit()
		t.conv.record(call.Answer(result.Output))
		after = append(after, result.Items...)
	}
	t.commit()
	t.conv.record(after...)
	t.emitChat(resp.Items)
	t.conv.emit(t.conv.meter.report())
	if diff := t.tools.UnifiedDiff(); diff != "" {
		t.conv.emit(protocol.TurnDiff{UnifiedDiff: diff})
	}
	return len(calls) > 0, nil
}

// emitChat reports the messages of a response on the Chat wire, where Codex sends them
// after the calls.
func (t *turn) emitChat(items []protocol.ResponseItem) {
	if t.conv.chat() {
		for _, item := range items {
			t.emitItem(item)
		}
	}
}

// commit adds the response to the history. It is called before each action that the
// history must have.
func (t *turn) commit() {
	if t.round == nil {
		return
	}
	t.conv.record(t.round.Items...)
	t.round = nil
}

// reasoning returns the reasoning settings of a request, nil for models that do not
// reason. For an unknown model it is only the effort, and only if a call chose it.
func (c *conversation) reasoning() *model.Reasoning {
	if cfg := c.provider().cfg; !cfg.SupportsReasoningSummaries && !model.FamilyOf(cfg.Model).Reasoning {
		if c.chosen.Choices.Effort != "" && !c.away() {
			return &model.Reasoning{Effort: c.now.Effort}
		}
		return nil
	}
	r := &model.Reasoning{Effort: c.now.Effort, Summary: c.now.Summary}
	if r.Summary == protocol.SummaryNone {
		r.Summary = ""
	}
	return r
}

// lastMessage returns the answer of the last message among items that has one, "" without one.
func lastMessage(items []protocol.ResponseItem) (last string) {
	for _, item := range items {
		if answer := model.Answer(messageText(item)); strings.TrimSpace(answer) != "" {
			last = answer
		}
	}
	return last
}

// messageText returns the text of an assistant's message, "" for other items.
func messageText(item protocol.ResponseItem) string {
	if m, ok := item.(protocol.MessageItem); ok && m.Role == "assistant" {
		return model.Text(m.Content)
	}
	return ""
}
