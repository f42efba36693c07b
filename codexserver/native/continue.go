package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// A turn whose process was killed is continued by another one, from the conversation's file:
//
//	the file ends with          then
//	a message of the user       the model is asked, or asked again
//	a part of a response        the part is left out, and the model is asked again
//	a call that did not begin   the call runs as any other; its question is asked again
//	a call that was refused     the model is told
//	a call that had begun       it does not run again: the model is told what is known
//	a whole answer              the turn ends with it

// maxContinued is how many processes may continue a turn, by [rollout.Turn].Continued. A turn that ends its
// process each time, such as by its memory, is given up. One that waits for a person does not end it: operators do.
const maxContinued = 5

// canContinue returns why turns of processes that have ended cannot be continued, or nil.
func (e *Engine) canContinue(context.Context) error {
	cfg, err := e.config(protocol.Config{})
	if err != nil {
		return err
	}
	return e.client(cfg.Provider()).Ready()
}

// Continue implements [engine.Continuable].
func (c *conversation) Continue(ctx context.Context, in protocol.TurnInput, note func(words string)) error {
	c.use.Lock()
	defer c.use.Unlock()
	t := c.newTurn(in.Key, c.box)
	defer t.inbox.close()
	release, err := c.enter()
	if err != nil {
		return c.fail(err)
	}
	defer release()
	defer c.flush()
	old, err := c.reload()
	if err != nil {
		return c.fail(err)
	}
	was := old.Turn(t.key)
	if err := c.continuable(was); err != nil {
		return c.fail(err)
	}
	if was.End != nil {
		return c.endAgain(was.End)
	}
	t.budget.most, t.budget.requests = was.First.MaxTokens, was.Requests
	if note == nil {
		note = func(string) {}
	}
	ctx, cancel := c.engine.withWallTime(ctx, was.Begun)
	defer cancel()
	c.remember(old, was.Items)
	c.meter.turns++
	for _, mark := range was.Marks {
		if mark != c.engine.processes.Mark() && !proc.EndMarked(mark) {
			note("A process that a command of this turn had started could not be ended after the server had ended.")
		}
	}
	t.write(rollout.Record{Kind: rollout.TurnContinues, Turn: t.key, PID: os.Getpid(), Mark: c.engine.processes.Mark()})
	words := fmt.Sprintf("the server that ran this turn (process %d) ended, at %s or later; process %d continues it", was.PID, was.Heard.UTC().Format(time.RFC3339), os.Getpid())
	c.emit(protocol.BackgroundEvent{Message: words})
	if t.form, err = newForm([]byte(was.First.Schema)); err == nil {
		err = t.proceed(ctx, old, was, note)
	}
	return t.leave(ctx, err)
}

// continuable returns why a turn cannot be continued, or nil.
func (c *conversation) continuable(was *rollout.Turn) error {
	const goOn = "; codex-reply continues the conversation"
	switch {
	case was == nil:
		return errors.New("the server ended before this turn began: nothing of it ran, and its message is not in the conversation; send it again")
	case was.End != nil:
		return nil
	case was.Foreign:
		return errors.New("the server ended while this turn ran, and the conversation was continued by another program before this turn could be")
	case !c.continues:
		return errors.New("the server ended while this turn ran, and the conversation was opened for something else before this turn could be continued" + goOn)
	case was.Continued >= maxContinued:
		return fmt.Errorf("the server ended %d times while this turn ran, so it is not continued again%s", was.Continued+1, goOn)
	}
	return nil
}

// endAgain reports the end of a turn that ended just before its process did.
func (c *conversation) endAgain(end *rollout.End) error {
	switch {
	case end.Aborted != "":
		c.host.Emit(protocol.TurnAborted{Reason: protocol.AbortInterrupted})
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: errors.New(end.Aborted)}
	case end.Error != "":
		return c.fail(errors.New(end.Error))
	}
	if end.Message != nil {
		c.host.Emit(protocol.AgentMessage{Message: *end.Message})
	}
	c.host.Emit(protocol.TaskComplete{LastAgentMessage: end.Message, Incomplete: end.Incomplete})
	return nil
}

// proceed does what is left of the turn.
func (t *turn) proceed(ctx context.Context, old *rollout.Rollout, was *rollout.Turn, note func(string)) error {
	t.budget.restore(t.conv.meter.total(), was.First.Used)
	t.inbox.open(t.conv.now.Cwd)
	if err := t.awaitServers(ctx); err != nil {
		return err
	}
	t.tools = t.box.Turn(t.toolContext())
	t.dropPart(was.Rest)
	tail := t.conv.history.items[max(len(t.conv.history.items)-was.Items, 0):]
	open := unanswered(tail)
	if len(open) > 0 {
		if err := t.answerCalls(ctx, open, was, note); err != nil {
			return err
		}
	}
	t.conv.catchUp(old)
	if len(open) > 0 || len(tail) == 0 {
		return t.loop(ctx)
	}
	resp := &model.Response{Cut: model.Cut(was.Cut)}
	for _, item := range slices.Backward(tail) {
		if !byModel(item) {
			break
		}
		if _, called := callOf(item); called {
			break
		}
		resp.Items = slices.Insert(resp.Items, 0, item)
	}
	if resp.Items != nil {
		for _, item := range resp.Items {
			if text := messageText(item); text != "" {
				t.conv.host.Emit(protocol.AgentMessage{Message: text})
			}
		}
		if t.take(resp); !t.requestCorrection() && t.inbox.done() {
			return nil
		}
	}
	return t.loop(ctx)
}

// dropPart removes the part of a response from the end of the history. It is in its last
// items, after the last whole response; others there are messages and answers.
func (t *turn) dropPart(rest int) {
	whole := max(len(t.conv.history.items)-rest, 0)
	end := slices.DeleteFunc(slices.Clone(t.conv.history.items[whole:]), func(item protocol.ResponseItem) bool {
		_, answers := answerOf(item)
		return byModel(item) && !answers
	})
	t.conv.history.items = append(t.conv.history.items[:whole:whole], end...)
}

// unanswered returns the calls without an answer, in their order. Ids may repeat.
func unanswered(items []protocol.ResponseItem) []tool.Call {
	var open []tool.Call
	for _, item := range items {
		if call, ok := callOf(item); ok {
			open = append(open, call)
		} else if id, ok := answerOf(item); ok {
			if i := slices.IndexFunc(open, func(c tool.Call) bool { return c.ID == id }); i >= 0 {
				open = slices.Delete(open, i, i+1)
			}
		}
	}
	return open
}

// answerCalls answers the calls of the response that was being handled: those that had begun
// with what is known of them, and others by running them.
func (t *turn) answerCalls(ctx context.Context, calls []tool.Call, was *rollout.Turn, note func(string)) error {
	var after []protocol.ResponseItem
	for i, call := range calls {
		output, items, err := t.answerCall(ctx, call, was.Calls[call.ID], note)
		if err != nil {
			for _, left := range calls[i:] {
				t.conv.record(answer(left, unfinished))
			}
			if ctx.Err() == nil {
				t.emitUsage()
			}
			return err
		}
		t.conv.record(answer(call, output))
		after = append(after, items...)
	}
	t.conv.record(after...)
	t.emitProgress()
	return nil
}

// answerCall answers one call, whose state may be nil.
func (t *turn) answerCall(ctx context.Context, call tool.Call, was *rollout.Call, note func(string)) (output string, items []protocol.ResponseItem, err error) {
	if was == nil {
		was = &rollout.Call{}
	}
	begun := was.Begins
	switch {
	case was.Refused != nil && was.Refused.Aborts:
		return "", nil, &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: &tool.AbortError{Outcome: elicit.Outcome{Decision: elicit.Abort}}}
	case was.Refused != nil:
		return was.Refused.Output, nil, nil
	case begun == nil:
	case len(begun.Files) > 0 && !was.Asks.IsZero() && !touched(begun.Files):
		// The sandbox stopped the patch, which changed nothing.
	case len(begun.Files) > 0:
		return t.interruptedPatch(begun.Files, note), nil, nil
	case !was.Asks.IsZero() && begun.Tool == "":
		call.Stopped = true
	default:
		return interrupted(begun, note), nil, nil
	}
	t.asked = map[string]time.Time{call.ID: was.Asks}
	result, err := t.call(ctx, call)
	return result.Output, result.Items, err
}

// interrupted returns what the model is told of a command or tool that had begun.
func interrupted(r *rollout.Record, note func(string)) string {
	what := "The command"
	if r.Tool != "" {
		what = "The tool"
	}
	shown := elicit.ShowCommand(r.Command)
	if r.Tool != "" {
		shown = elicit.OneLine(r.Tool, 200)
	}
	note("The server ended while this ran, or before its end was recorded: " + elicit.OneLine(shown, 200) + ". It may have had effects, and was not run again.")
	return "interrupted: the server ended while this ran, or before its end was recorded. " + what +
		" may have had effects; its exit code and output are not known. It was not run again. Find out what it has done before you repeat it."
}

// touched reports whether a patch has changed any of its files.
func touched(files []rollout.File) bool {
	return slices.ContainsFunc(writesOf(files), func(w patch.Write) bool { return w.State() != patch.Undone })
}

// interruptedPatch returns what the model is told of a patch that had begun, by the content
// of its files.
func (t *turn) interruptedPatch(files []rollout.File, note func(string)) string {
	lists := map[patch.State][]string{}
	for _, w := range writesOf(files) {
		state := w.State()
		lists[state] = append(lists[state], w.Path)
	}
	done, undone, neither := lists[patch.Done], lists[patch.Undone], lists[patch.Neither]
	var words string
	switch {
	case len(undone)+len(neither) == 0:
		words = "the server ended while this patch was applied. All of its files have the new content: it is applied."
		t.conv.emit(protocol.BackgroundEvent{Message: words})
		return words
	case len(done)+len(neither) == 0:
		words = "the server ended before this patch was applied. None of its files was changed; apply it again if it is still wanted."
		t.conv.emit(protocol.BackgroundEvent{Message: words})
		return words
	}
	words = "the server ended while this patch was applied, and only a part of it is in the files."
	for _, list := range []struct {
		what  string
		paths []string
	}{{"changed", done}, {"not changed", undone}, {"with another content, perhaps a part of the new one", neither}} {
		if len(list.paths) > 0 {
			words += " " + strings.ToUpper(list.what[:1]) + list.what[1:] + ": " + showPaths(list.paths) + "."
		}
	}
	note("Look at these files: " + words)
	return "interrupted: " + words + " Read the files before you go on."
}

// showPaths returns paths as words, with a limit.
func showPaths(paths []string) string {
	const most = 50
	var shown []string
	for _, path := range paths[:min(len(paths), most)] {
		shown = append(shown, elicit.ShowCommand([]string{path}))
	}
	if more := len(paths) - most; more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(shown, ", ")
}
