package tools

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/stack"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// Turn is a turn that a tool runs, from the call to the result. A turn in the background outlives its call.
type Turn struct {
	table   *Table
	thread  *thread.Thread
	attend  thread.Attend
	in      protocol.TurnInput // nothing for a review, or after the end
	review  *reviewArguments   // nil for other turns, and after the end
	resume  resume
	most    int // bytes of JSON of the answer, and of the structured content
	log     *turn.Turn
	leave   func() // reports the end to [limit], or nil
	outcome outcome
	done    chan struct{} // closed when there is a result

	// The mutex of the owner guards these, but for the first two.
	owner      *Turns            // of the client that began the turn
	polled     bool              // that client may get the result of a task
	background bool              // codex-wait has the result
	answered   bool              // a caller has the result; without background, the call had given up at the end if not
	places     map[*Turns]func() // how clients leave that are asked besides the owner's
}

// newTurn returns a turn of a call.
func (c *Call) newTurn(background bool) *Turn {
	a := c.Awaited
	if background {
		a = c.Background
	}
	t := &Turn{
		table: c.table, most: c.maxResult(), log: turn.New(c.table.options.Report),
		done: make(chan struct{}), owner: c.Turns, polled: c.Survival.Durable, background: background,
	}
	a.Turn, a.Caller, a.Submission = t.log, c.caller(), ""
	t.attend = a
	return t
}

// caller returns who calls, for threads. The folders that calls are limited to are the client's, too.
func (c *Call) caller() *thread.Caller {
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

// run queues a turn, which runs in a goroutine of the server, and waits for it, unless it is one in the
// background.
func (c *Call) run(ctx context.Context, t *Turn) *mcptypes.CallToolResult {
	background := t.background
	if !c.Turns.add(t) {
		return failure(t.ThreadID(), fmt.Sprintf("%d turns run in the background, and no more may: wait for one with codex-wait, or stop one with codex-interrupt", maxRunning))
	}
	if c.table.Continues() && t.review == nil && t.resume.Key == "" && (c.Survival.Durable || background || c.Until != nil) {
		t.resume.Key = rand.Text()
	}
	queued := t.queue()
	t.leave, c.leave = c.leave, func() {}
	if background && c.Survival.Kept != nil {
		c.Survival.Kept(t)
	}
	if c.Begun != nil {
		c.Begun(t)
	}
	if background {
		c.Turns.keep(t)
		c.Turns.begin(func() { t.run(c.Turns.ctx, queued) })
		return t.interim(protocol.StatusRunning, "The turn runs in the background. Call codex-wait with this threadId for its result.")
	}
	parent := ctx // the turn ends with its call, before the next message of the client is read
	if c.Until != nil {
		parent = context.WithoutCancel(ctx) // it may outlive the call
	}
	own, stop := context.WithCancelCause(parent)
	follow := func(ctx context.Context) (leave func() bool) {
		return context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })
	}
	unfollow := follow(ctx)
	c.Turns.begin(func() {
		defer stop(nil)
		t.run(own, queued)
	})
	if Wait(c.until(ctx), false, t) == Limit && t.Detach() && unfollow() {
		follow(c.Turns.ctx)
		if c.Survival.Kept != nil {
			c.Survival.Kept(t)
		}
		if r := t.still(c); r != nil {
			return r
		}
		c.read = append(c.read, t)
	}
	<-t.done // a call that was cancelled interrupts its turn, and says how that ended
	return t.outcome.call
}

// queue queues the turn in its thread.
func (t *Turn) queue() *thread.Turn {
	if t.review != nil {
		return t.thread.Review(t.attend, t.review.begin)
	}
	t.in.Key = t.resume.Key
	if !t.resume.Began.IsZero() { // by another process
		t.in.Continue = func(words string) { t.log.Remark(words) }
	}
	return t.thread.Begin(t.attend, t.in)
}

// run runs the turn to its result: the answer, and further blocks with the remarks. A turn that fails or is
// aborted has an error result with the reason. The thread stays usable. A panic fails the turn and nothing else.
func (t *Turn) run(ctx context.Context, queued *thread.Turn) {
	defer func() {
		if t.outcome.call == nil {
			words := "internal error: the turn panicked"
			t.outcome.did = protocol.TurnResult{ThreadID: t.ThreadID(), Status: protocol.StatusFailed, Content: words}
			t.outcome.call = failure(t.ThreadID(), words)
		}
		t.close(ctx.Err() != nil)
	}()
	_ = stack.Guard(t.table.options.Report.Logger, "a turn", func() (err error) {
		t.log.Limit(t.resume.Budget)
		if t.resume.Ended > maxContinued {
			queued.Leave()
			err = &engine.TurnError{Message: fmt.Sprintf("the server ended %d times while this turn ran, so it is not continued again; codex-reply continues the conversation", t.resume.Ended)}
			t.log.End(err)
		} else {
			err = queued.Run(ctx)
		}
		t.conclude(err)
		return nil
	})
}

// close ends the turn, which has its result, and gives up what it only needed until then: it may be kept for long.
// Lost is true if the caller gave up before.
func (t *Turn) close(lost bool) {
	t.in, t.attend, t.review = protocol.TurnInput{}, thread.Attend{}, nil
	if t.leave != nil {
		t.leave()
	}
	t.owner.mu.Lock()
	defer t.owner.mu.Unlock()
	for _, leave := range t.places {
		leave()
	}
	close(t.done)
	t.owner.ended(t, lost)
}

// Begin queues a turn of a thread that no tool started, as [thread.Thread.Begin] does, and
// keeps the diff of the turn for codex-show.
func (t *Table) Begin(th *thread.Thread, a thread.Attend, in protocol.TurnInput) *thread.Turn {
	a.Turn = turn.New(t.options.Report)
	return th.Begin(a, in)
}

// over reports whether the turn has ended.
func (t *Turn) over() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// isOf reports whether the turn is one of the thread with an id.
func (t *Turn) isOf(id string) bool { return thread.CanonicalID(t.ThreadID()) == id }

// ThreadID returns the id of the turn's thread.
func (t *Turn) ThreadID() string { return t.thread.ID() }

// Done implements [Pending].
func (t *Turn) Done() <-chan struct{} { return t.done }

// Asks implements [Pending]. The question is one that no caller has seen.
func (t *Turn) Asks() (open bool, changed <-chan struct{}) { return t.log.News() }

// State returns the current state. Its status has ended when there is a result.
func (t *Turn) State() turn.State {
	s := t.log.State()
	if t.over() {
		s.Status, s.Question = t.outcome.did.Status, ""
	}
	return s
}

// Detach moves a turn to the background, for a caller that leaves without ending it.
// codex-wait then returns the result. Detach returns false if there already is a result, or if too many run in the
// background.
func (t *Turn) Detach() bool {
	t.owner.mu.Lock()
	defer t.owner.mu.Unlock()
	if !t.background && !t.over() && !t.owner.full() {
		t.background = true
		t.owner.keep(t)
	}
	return t.background
}

// InBackground reports whether the turn runs in the background, or has.
func (t *Turn) InBackground() bool {
	t.owner.mu.Lock()
	defer t.owner.mu.Unlock()
	return t.background
}
