package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// turn is a running turn. It sends requests to the model and runs the calls of each
// response, until a response has no calls and the inbox is empty.
type turn struct {
	*conversation
	box      *tool.Toolbox // the conversation's, or a review's
	reviews  bool
	tools    *tool.Turn
	requests int
	tokens   int64
	budget   int64 // of tokens; 0 means none
	// compacted is true from a compaction until the history is not full any more.
	compacted bool
	// round is the last response until it becomes part of the history. When the turn is
	// aborted before any call ran, the round is dropped.
	round    []protocol.ResponseItem
	roundCut model.Cut
	inbox    *inbox
	input    []protocol.InputItem // what the user sent to this turn
	key      string               // of the turn, see [protocol.TurnInput]
	schema   json.RawMessage      // of the last message
	asked    map[string]time.Time // when a process that has ended asked about calls
	noting   sync.Mutex           // held while a concurrent call writes a record
	form     *form                // of the last message; nil leaves it open
	answer   final
	incoming incoming
}

// limitError ends a turn that reached one of its limits.
type limitError struct{ what string }

func (e *limitError) Error() string { return "the turn was stopped: " + e.what }

// Turn implements [engine.Conversation].
func (c *conversation) Turn(ctx context.Context, in protocol.TurnInput) error {
	return c.runTurn(ctx, in, &turn{conversation: c, box: c.box})
}

// runTurn runs the turn t.
func (c *conversation) runTurn(ctx context.Context, in protocol.TurnInput, t *turn) error {
	c.use.Lock()
	defer c.use.Unlock()
	defer c.startIdle()
	if limit := c.engine.limits.WallTime; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, &limitError{what: fmt.Sprintf("it took longer than %v", limit)})
		defer cancel()
	}
	if in.Context != nil {
		c.now, c.chosen = *in.Context, false
		c.confine()
	}
	if in.Effort != "" {
		c.now.Effort, c.chosen = in.Effort, true
	}
	box := newInbox()
	defer box.close()
	c.inbox.Store(box)
	c.reach()
	c.host.Emit(protocol.TaskStarted{ModelContextWindow: c.contextWindow()})
	release, err := c.engine.claim(c.file.Path())
	if err == nil {
		defer release()
		defer c.flush()
		err = c.refresh()
	}
	if err == nil && in.Rollback > 0 {
		err = c.takeBack(in.Rollback)
	}
	if err != nil {
		return c.fail(err)
	}
	c.inform()
	c.turns++
	t.inbox, t.input, t.budget, t.incoming.emit = box, in.Items, in.MaxTokens, c.emit
	t.key, t.schema = in.Key, in.OutputSchema
	var last *string
	if t.form, err = newForm(in.OutputSchema); err == nil {
		err = t.run(ctx, in)
		last = t.answer.message()
	}
	t.keepUnread(box.close())
	if err == nil {
		c.notify(t.input, last)
	}
	return t.finish(ctx, err)
}

// finish reports how a turn ended.
func (t *turn) finish(ctx context.Context, err error) error {
	if t.tools != nil {
		t.tools.End()
	}
	c, last := t.conversation, &t.answer
	var abort *engine.AbortError
	var limit *limitError
	switch {
	case err == nil:
		if err := t.ends(&rollout.End{Message: last.message(), Incomplete: last.incomplete()}); err != nil {
			return c.fail(err)
		}
		c.emit(protocol.TaskComplete{LastAgentMessage: last.message(), Incomplete: last.incomplete()})
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
		_ = t.ends(&rollout.End{Aborted: abort.Error()}) // it is aborted in any case
		c.emit(protocol.TurnAborted{Reason: abort.Reason})
		return abort
	}
	_ = t.ends(&rollout.End{Error: err.Error()}) // it fails in any case
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
	done, err := t.shorten(ctx, in)
	if err != nil {
		return err
	}
	if err := t.begin(in); err != nil {
		return err
	}
	if len(in.Items) == 0 {
		t.answer.text = done
		return nil
	}
	t.inbox.open(t.now.Cwd)
	if !t.reviews {
		if err := t.awaitServers(ctx); err != nil {
			return err
		}
	}
	t.tools = t.box.Turn(t.toolContext())
	return t.loop(ctx)
}

// loop requests responses of the model and runs their calls until a response has none.
func (t *turn) loop(ctx context.Context) error {
	for {
		resp, err := t.respond(ctx)
		if err != nil && t.answer.resumed && ctx.Err() == nil {
			t.answer.failed = err
			return nil
		}
		if err != nil {
			return err
		}
		called, err := t.obey(ctx, resp)
		switch {
		case err != nil:
			return err
		case !called && t.resume(resp):
			continue
		case !called && !t.requestCorrection() && t.inbox.done():
			return nil
		}
		t.answer = final{}
	}
}

// toolContext returns the folder, policies and host for the calls of the turn.
func (t *turn) toolContext() tool.Context {
	c := tool.Context{
		Cwd:            t.now.Cwd,
		ApprovalPolicy: t.now.ApprovalPolicy,
		SandboxPolicy:  t.now.SandboxPolicy,
		Host:           t.toolHost(),
		Acting:         t.act,
	}
	if t.reviews {
		c.ApprovalPolicy, c.SandboxPolicy = protocol.ApprovalNever, protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}
	}
	return c
}

// inform adds a message to the history when the policies or the folder have changed.
func (c *conversation) inform() {
	if m, ok := environmentMessage(c.now, &c.sent, ""); ok {
		c.record(m)
	}
	c.sent = c.now
}

// begin adds the user's message to the history.
func (t *turn) begin(in protocol.TurnInput) error {
	if len(in.Items) == 0 {
		return nil
	}
	message, event, err := readInput(t.now.Cwd, in.Items)
	if err != nil {
		return err
	}
	if t.key != "" {
		// Otherwise another process could continue the turn with looser policies: without a
		// turn's context those of the configuration count.
		t.checkWrite(t.file.TurnContext(t.now))
	}
	t.begins()
	t.record(message)
	t.checkWrite(t.file.Event(event))
	return nil
}

// ask requests a response of the model and counts its tokens.
func (t *turn) ask(ctx context.Context) (*model.Response, error) {
	t.readInbox()
	t.checkWrite(t.file.TurnContext(t.now))
	t.checkWrite(t.file.Sync())
	if err := t.kept(); err != nil {
		return nil, err
	}
	req := &model.Request{
		Model:          t.now.Model,
		Instructions:   t.instructions,
		Items:          t.history,
		Tools:          t.offer(),
		SeveralCalls:   t.engine.fileTools(t.cfg),
		Reasoning:      t.reasoning(),
		OutputSchema:   t.form.schema(),
		Verbosity:      t.cfg.Verbosity,
		ConversationID: t.id,
	}
	if t.chosen {
		req.Effort = t.now.Effort
	}
	resp, err := t.stream(ctx, req, t.progress)
	if err != nil {
		return nil, err
	}
	if resp.Usage != nil {
		t.spend(*resp.Usage)
	}
	return resp, nil
}

// afford counts a request and returns an error when a limit does not allow it.
func (t *turn) afford() error {
	limit := t.engine.limits.ModelRequests
	if t.requests++; limit > 0 && t.requests > limit {
		return &limitError{fmt.Sprintf("it needs more than %d requests to the model", limit)}
	}
	return t.spent()
}

// spent returns an error when the turn has used all its tokens.
func (t *turn) spent() error {
	for _, limit := range []int64{t.engine.limits.Tokens, t.budget} {
		if limit > 0 && t.tokens >= limit {
			return &limitError{fmt.Sprintf("it used %d of %d tokens", t.tokens, limit)}
		}
	}
	return nil
}

// spend counts the tokens of a response. Some providers state only the parts, some only
// the total.
func (t *turn) spend(u protocol.TokenUsage) {
	t.tokens += max(u.TotalTokens, u.InputTokens+u.OutputTokens)
	t.count(u)
}

// obey runs the calls of a response and reports whether it had any.
func (t *turn) obey(ctx context.Context, resp *model.Response) (called bool, err error) {
	drop(resp)
	t.round, t.roundCut = resp.Items, resp.Cut
	var calls []tool.Call
	var from []int // the index of each call in the response
	for i, item := range resp.Items {
		if call, ok := callOf(item); ok {
			calls, from = append(calls, call), append(from, i)
		}
	}
	if len(calls) > 0 {
		if err := t.spent(); err != nil {
			t.stopBefore(resp.Items)
			return true, err
		}
	}
	var after []protocol.ResponseItem
	for i := 0; i < len(calls); {
		n := max(1, t.independents(calls[i:]))
		var results []tool.Result
		var errs []error
		if n > 1 {
			results, errs = t.callAll(ctx, calls[i:i+n])
		} else {
			result, err := t.call(ctx, calls[i])
			results, errs = []tool.Result{result}, []error{err}
		}
		for k, result := range results {
			if errs[k] != nil {
				t.abandon(resp.Items[from[i+k]:])
				if ctx.Err() == nil { // after an interrupt Codex sends turn_aborted alone
					t.emitUsage()
				}
				return true, errs[k]
			}
			t.commit()
			t.record(answer(calls[i+k], result.Output))
			after = append(after, result.Items...)
		}
		i += n
	}
	t.commit()
	t.record(after...)
	t.emitChat(resp.Items)
	t.emitUsage()
	if diff := t.tools.UnifiedDiff(); diff != "" {
		t.emit(protocol.TurnDiff{UnifiedDiff: diff})
	}
	return len(calls) > 0, nil
}

// stopBefore ends the turn before the calls of a response run. The response stays in the
// history, and its calls are answered as unfinished.
func (t *turn) stopBefore(items []protocol.ResponseItem) {
	t.commit()
	t.abandon(items)
	t.emitChat(items)
	t.emitUsage()
}

// emitChat reports the messages of a response on the Chat wire, where Codex sends them
// after the calls.
func (t *turn) emitChat(items []protocol.ResponseItem) {
	if t.chat() {
		for _, item := range items {
			t.emitItem(item)
		}
	}
}

// emitUsage reports the tokens used so far, those of the last response included.
func (t *turn) emitUsage() {
	t.emit(protocol.TokenCount{Info: t.usage, RateLimits: t.limits})
}

// commit adds the response to the history. It is called before each action that the
// history must have.
func (t *turn) commit() {
	if t.round == nil {
		return
	}
	t.record(t.round...)
	t.write(rollout.Record{Kind: rollout.ResponseEnds, Cut: string(t.roundCut)})
	t.round = nil
}

// unfinished answers a call that the turn did not finish.
const unfinished = "aborted: the turn ended before this was finished"

// abandon ends a round when the turn is aborted. It drops a response that is not in the
// history; otherwise it answers the remaining calls, so that the history stays valid.
func (t *turn) abandon(left []protocol.ResponseItem) {
	if t.round != nil {
		t.round = nil
		return
	}
	for _, item := range left {
		if call, ok := callOf(item); ok {
			t.record(answer(call, unfinished))
		}
	}
}

// reasoning returns the reasoning settings of a request, nil for models that do not
// reason. For an unknown model it is only the effort, and only if a call chose it.
func (c *conversation) reasoning() *model.Reasoning {
	if !c.cfg.SupportsReasoningSummaries && !model.FamilyOf(c.now.Model).Reasoning {
		if c.chosen && c.now.Effort != "" {
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

// count adds the usage of a response to the conversation's.
func (c *conversation) count(u protocol.TokenUsage) {
	info := protocol.TokenUsageInfo{LastTokenUsage: u, ModelContextWindow: c.contextWindow()}
	if c.usage != nil {
		info.TotalTokenUsage = c.usage.TotalTokenUsage
	}
	sum := &info.TotalTokenUsage
	sum.InputTokens += u.InputTokens
	sum.CachedInputTokens += u.CachedInputTokens
	sum.OutputTokens += u.OutputTokens
	sum.ReasoningOutputTokens += u.ReasoningOutputTokens
	sum.TotalTokens += u.TotalTokens
	c.usage = &info
}

// lastMessage returns the text of the last message among items, nil without one.
func lastMessage(items []protocol.ResponseItem) *string {
	var last *string
	for _, item := range items {
		if text := messageText(item); text != "" {
			last = &text
		}
	}
	return last
}

// messageText returns the text of an assistant's message, "" for other items.
func messageText(item protocol.ResponseItem) string {
	if m, ok := item.(protocol.MessageItem); ok && m.Role == "assistant" {
		return contentText(m)
	}
	return ""
}

// contentText returns the text of a message.
func contentText(m protocol.MessageItem) string {
	var b strings.Builder
	for _, c := range m.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}
