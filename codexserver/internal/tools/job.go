package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json/jsontext"
)

// Job is a turn that a tool runs, from the call to the result. It is the first
// [thread.Observer] of the turn. A job in the background outlives its call, and so does a
// detached one.
type Job struct {
	thread.NoQuestions               // the log has them
	attendance         thread.Attend // the caller's, with the job as an observer
	options            *Options
	thread             *thread.Thread
	review             *reviewCall // nil for other turns
	kept               keepsake
	form               form
	log                *turnlog.Turn
	meter              meter
	leave              func() // reports the end to [turns], or nil
	end                ending
	done               chan struct{} // closed when end is set and has the result

	// The mutex of the client's [roll] guards these.
	delivery delivery
	visitors map[*Jobs]func() // how clients leave that are asked besides its own
}

// ending is how a turn has ended.
type ending struct {
	cut    bool                // the result's texts have only the beginning of the message
	did    protocol.TurnResult // whole: what is sent is fitted
	result *mcptypes.CallToolResult

	remarks int // how many of the log it has
}

// newJob returns a job of a call with the attendance a.
func (c *call) newJob(a thread.Attend) *Job {
	o := c.table.options
	j := &Job{
		attendance: a, options: o, form: form{room: c.table.room(c.MaxText)},
		log: turnlog.NewTurn(o.Report), done: make(chan struct{}), delivery: delivery{owner: c.Jobs, durable: c.Survival.Durable},
	}
	j.attendance.Turn, j.attendance.Caller, j.attendance.Submission = j.log, c.caller(), ""
	j.attendance.Observers = append([]thread.Observer{j}, a.Observers...)
	return j
}

// caller returns who calls, for threads. The folders that calls are limited to are the client's, too.
func (c *call) caller() *thread.Caller {
	o := c.table.options
	worktrees := ""
	if o.Home != "" {
		worktrees = git.Worktrees(o.Home)
	}
	return &thread.Caller{Client: c.Host, FullAccess: o.FullAccess, Locked: c.table.confined, Worktrees: worktrees, Folders: func(ctx context.Context) []string {
		var all []string
		if c.Folders != nil {
			all = c.Folders(ctx)
		}
		return append(all, o.Calls.Folders...)
	}}
}

// Event implements [thread.Observer].
func (j *Job) Event(e thread.Event) {
	if _, ok := e.Msg.(protocol.TokenCount); ok {
		j.meter.used(j.kept.Budget, j.log.Tokens())
	}
}

// run runs the turn and returns its result: the answer, and further blocks with the
// remarks. A turn that fails or is aborted has an error result with the reason. The thread
// stays usable. A panic fails the turn and nothing else.
func (j *Job) run(ctx context.Context, ticket *thread.Ticket, in protocol.TurnInput) (r *mcptypes.CallToolResult) {
	defer func() {
		if v := recover(); v != nil {
			r = j.broken(v, debug.Stack())
		}
	}()
	return j.turn(ctx, ticket, in)
}

// broken ends a job whose turn panicked.
func (j *Job) broken(v any, stack []byte) *mcptypes.CallToolResult {
	if log := j.options.Report.Logger; log != nil {
		log.Error("panic", "in", "a turn", "value", fmt.Sprint(v), "stack", string(stack))
	}
	if j.end.result == nil {
		words := "internal error: the turn panicked"
		j.end.did = protocol.TurnResult{ThreadID: j.ThreadID(), Status: protocol.StatusFailed, Content: words}
		j.end.result = failure(j.ThreadID(), words)
	}
	if !j.over() {
		j.close(false)
	}
	return j.end.result
}

// turn is run without the panic.
func (j *Job) turn(ctx context.Context, ticket *thread.Ticket, in protocol.TurnInput) *mcptypes.CallToolResult {
	own, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	j.meter.stop = stop
	err := j.drive(own, ticket, in)
	lost := ctx.Err() != nil
	var spent *spentError
	if err == nil || !errors.As(context.Cause(own), &spent) {
		spent = nil
	}
	j.conclude(err, spent)
	j.close(lost)
	return j.end.result
}

// drive runs the turn with its engine until it ends, and looks at what it changed.
func (j *Job) drive(ctx context.Context, ticket *thread.Ticket, in protocol.TurnInput) (err error) {
	a, number := j.attendance, 0
	continued := !j.kept.Began.IsZero() // in another process
	a.Begin = func(ctx context.Context) {
		number, _ = j.thread.Log().Count()
		used := j.kept.Used
		if !continued {
			used = j.thread.Usage()
		}
		j.log.Begin(ctx, j.thread.Info(), used, j.thread.WritableRoots()...)
		began, _ := j.began()
		j.meter.begin(j.kept.Budget, time.Since(began))
	}
	switch {
	case j.review != nil:
		err = j.thread.Review(ctx, ticket, a, j.review.begin)
	case j.kept.Ended > maxContinued:
		ticket.Leave()
		err = &engine.TurnError{Message: fmt.Sprintf("the server ended %d times while this turn ran, so it is not continued again; codex-reply continues the conversation", j.kept.Ended)}
	default:
		if continued {
			in.Continue = func(words string) { j.log.Remark(words) }
		}
		err = j.thread.Turn(ctx, ticket, a, in)
	}
	j.meter.end()
	if safefile.IsFull(err) {
		_ = j.options.Room.Release() // of what is closed, nothing needs to be written
	}
	j.log.End(err)
	if diff := j.log.Diff(); diff != "" {
		j.thread.Log().Changed(number, diff)
	}
	return err
}

// conclude makes the result of a turn that ended with err. Spent is the budget that stopped it, or nil.
func (j *Job) conclude(err error, spent *spentError) {
	if err == nil && j.kept.Budget.blind(j.log.Tokens()) {
		j.log.Remark("The budget of tokens was not held: the model's provider does not count them.")
	}
	did := j.log.So()
	did.Output, did.Worktree = j.output(err), j.kept.worktree()
	var text, hidden string
	did.Status, text, hidden = j.answer(err, spent)
	if words := j.log.Untold(); words != "" {
		j.log.Remark(words)
	}
	if spent != nil {
		did.Stopped = turnlog.Show(spent.Error(), turnlog.MaxWords)
	}
	if j.review != nil && err == nil {
		if text, err = j.review.end(text, &did); err != nil {
			did.Status, text = protocol.StatusFailed, "codex-review: "+err.Error()
		}
	}
	remarks := j.log.Remarks()
	texts := append([]string{j.form.cut(text, j.form.room.most, j.thread)}, remarks...)
	did.ThreadID, did.Content = turnlog.Show(j.thread.ID(), maxName), cmp.Or(hidden, joined(texts))
	if j.form.room.shows {
		did.Truncated.See = "codex-show has the rest"
	}
	r := &mcptypes.CallToolResult{Content: blocks(texts...), StructuredContent: did.JSON(j.form.room.most)}
	j.end = ending{cut: texts[0] != text, did: did, result: r, remarks: len(remarks)}
	lines := append([]string{j.named(j.end.cut)}, notDone(&did)...)
	if err != nil && spent == nil {
		lines, r.IsError = append(lines, facts(did)), new(true)
	}
	forModel(r, lines...)
}

// answer returns how a turn ended, and the answer or why there is none. Hidden is for the structured content
// alone, in place of the text.
func (j *Job) answer(err error, spent *spentError) (status protocol.TurnStatus, text, hidden string) {
	text, lacks := j.log.Answer()
	var abort *engine.AbortError
	switch {
	case spent != nil:
		return protocol.StatusAborted, stopped(spent, cmp.Or(j.log.Said())), ""
	case errors.As(err, &abort):
		return protocol.StatusAborted, "Turn aborted: " + abortCause(abort) + j.soFar(), ""
	case err != nil:
		return protocol.StatusFailed, err.Error() + j.soFar(), ""
	case lacks == "":
		return protocol.StatusCompleted, text, ""
	}
	words := "The answer is incomplete: " + lacks + ". codex-reply continues, for example with \"continue\"."
	switch {
	case j.review != nil && text == "": // its end says so
	case lacks == protocol.EmptyAnswer:
		hidden = words
	case text == "":
		text = words
	default:
		j.log.Remark(words)
	}
	return protocol.StatusIncomplete, text, hidden
}

// named returns the hint of a turn that has ended.
func (j *Job) named(cut bool) string {
	return hint(j.ThreadID(), &j.end.did, cut && j.form.room.shows)
}

// soFar returns what was written of a message that the end of the turn cut off.
func (j *Job) soFar() string {
	if text, _ := j.log.Said(); strings.TrimSpace(text) != "" {
		return "\n\nThe answer until then:\n\n" + strings.TrimSpace(text)
	}
	return ""
}

// output returns the answer of a turn that ended with err as JSON, or nil if there is no
// schema. If the answer does not match the schema, it adds a remark.
func (j *Job) output(err error) jsontext.Value {
	if err != nil || j.form.schema == nil {
		return nil
	}
	text, _ := j.log.Answer()
	value, fault := j.form.schema.Check(text)
	if fault != nil {
		j.log.Remark("The answer does not fit output-schema: " + fault.Error())
	}
	return value
}

// ThreadID returns the id of the job's thread.
func (j *Job) ThreadID() string { return j.thread.ID() }

// Detach moves a job to the background, for a caller that leaves without ending it.
// codex-wait then returns the result. Detach returns false if there already is a result.
func (j *Job) Detach() bool {
	js := j.delivery.owner
	js.mu.Lock()
	defer js.mu.Unlock()
	return j.detach()
}

// detach is Detach under the mutex of the roll.
func (j *Job) detach() bool {
	j.delivery.background = j.delivery.background || !j.over()
	return j.delivery.background
}

// Interim returns the result for a caller that leaves before the end: the state and an
// advice.
func (j *Job) Interim(advice string) *mcptypes.CallToolResult {
	s := j.State()
	return j.interim(s.Status, s.Words()+" "+advice)
}

// interim returns the result of a call whose turn continues.
func (j *Job) interim(status protocol.TurnStatus, text string) *mcptypes.CallToolResult {
	r := result(j.ThreadID(), text)
	last := len(r.StructuredContent) - 1
	r.StructuredContent = append(quote(append(r.StructuredContent[:last:last], `,"status":`...), string(status)), '}')
	if w := j.kept.Worktree; w != nil {
		r.StructuredContent = append(r.StructuredContent[:len(r.StructuredContent)-1], `,"worktree":{"path":`...)
		r.StructuredContent = append(quote(append(quote(r.StructuredContent, w.Path), `,"branch":`...), w.Branch), `}}`...)
	}
	forModel(r, hint(j.ThreadID(), nil, false))
	return r
}

// State returns the current state.
func (j *Job) State() turnlog.State { return j.state(j.over()) }

// state is State for a job that was over or not.
func (j *Job) state(over bool) turnlog.State {
	if !over {
		return j.log.State()
	}
	s := j.log.State()
	s.Status, s.Question = j.end.did.Status, ""
	return s
}

func abortCause(e *engine.AbortError) string {
	switch {
	case e.Cause == nil:
		return string(cmp.Or(e.Reason, protocol.AbortInterrupted))
	case errors.Is(e.Cause, jsonrpc.ErrClosed):
		return clientGone
	}
	return strings.Replace(e.Cause.Error(), jsonrpc.ErrCancelled.Error(), "the client cancelled the call", 1)
}

const clientGone = "the client closed the connection"

// notBegun returns the result of a call whose conversation could not be started or found.
// If the client has disconnected, that is the reason.
func notBegun(ctx context.Context, tool, thread string, err error) *mcptypes.CallToolResult {
	if errors.Is(context.Cause(ctx), jsonrpc.ErrClosed) {
		return failure(thread, "Turn aborted: "+clientGone)
	}
	return failure(thread, tool+": "+err.Error())
}
