package tools

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// newTurn returns a turn of the call, which has no thread yet, and who attends it.
func (c *Call) newTurn(background bool) (*begun, thread.Attend) {
	b := &begun{
		Turn: turn.New(c.table.options.Report), owner: c.Turns, polled: c.Durable, background: background,
		follows: func() bool { return false },
	}
	b.Order.Most, b.Order.Shows = c.maxResult(), c.table.Has(showTool.name)
	b.Order.CheckTime = c.table.options.CheckTime
	c.asked = func() {}
	a := c.Awaited
	if background {
		a = c.Background
	}
	a.Turn, a.Submission = b.Turn, ""
	return b, a
}

// revive returns the thread with an id, which is resumed with cfg. It ends and refuses one whose folder a call may not
// have.
func (c *Call) revive(ctx context.Context, id string, cfg protocol.Config, a thread.Attend) (*thread.Thread, error) {
	th, err := c.Threads.Revive(ctx, c.table.Caller(c.Client, c.Roots), id, cfg, a)
	if err != nil {
		return nil, err
	}
	if err := c.table.Rules.Resumed(th.Info().Cwd); err != nil {
		return nil, errors.Join(err, c.Threads.End(context.WithoutCancel(ctx), id))
	}
	return th, nil
}

// launch is a turn of a thread that is to begin.
type launch struct {
	*begun
	thread *thread.Thread
	attend thread.Attend
	input  protocol.TurnInput
	leave  func()        // reports its end to the limit
	ended  bool          // in another process
	tree   *git.Worktree // that was made for it, or nil
}

// run begins a turn of a thread. It returns nil if the call waits for it, see [Call.Result].
func (c *Call) run(
	ctx context.Context, b *begun, th *thread.Thread, a thread.Attend, in protocol.TurnInput,
) *mcptypes.CallToolResult {
	return c.runAll(ctx, launch{begun: b, thread: th, attend: a, input: in, leave: c.leave})
}

// runAll is run for several attempts of one call. The first one is its turn, which is over when all have ended.
func (c *Call) runAll(ctx context.Context, first launch, others ...launch) *mcptypes.CallToolResult {
	all, b := append([]launch{first}, others...), first.begun
	for i, l := range all {
		if l.begun.thread = l.thread; l.thread != nil {
			l.Order.Thread = l.thread.ID()
		}
		if i > 0 {
			b.others = append(b.others, l.begun)
		}
	}
	background := b.background
	if !c.Turns.add(b) {
		for _, l := range others { // who began the call leaves for the first
			l.leave()
		}
		return failure(b.Order.Thread, fmt.Sprintf("%d turns run in the background, and no more may: "+
			"wait for one with codex-wait, or stop one with codex-interrupt", maxRunning))
	}
	continues := c.table.Continues() && first.attend.Review == "" && (c.Durable || background || c.Until != nil)
	for i, l := range all {
		if i > 0 {
			c.Turns.add(l.begun) // which always has room for a turn that is not in the background
		}
		if continues && l.Order.Key == "" {
			l.Order.Key = rand.Text()
		}
	}
	c.begun, c.leave = b, func() {}
	life := ctx // the turn ends with its call, before the next message of the client is read
	switch {
	case background:
		life = c.Turns.ctx
	case c.Until != nil: // it may outlive the call
		life = context.WithoutCancel(ctx)
		b.follows = context.AfterFunc(ctx, func() { b.Interrupt(context.Cause(ctx)) })
	}
	if background {
		c.keep() // before anything of it runs
	}
	if c.Begun != nil {
		c.Begun(b.Turn)
	}
	work := make([]func(), len(all)) // of each, in the order of the queue
	for i, l := range all {
		work[i] = func() {}
		if !l.ended {
			l.input.Key = l.Order.Key
			work[i] = l.thread.Queue(life, l.attend, l.input).Run
		}
	}
	for i, l := range others {
		c.Turns.running.Go(func() {
			work[i+1]()
			l.leave()
			l.owner.end(l.begun)
		})
	}
	c.Turns.running.Go(func() {
		work[0]()
		first.leave() // before the client has the result, and begins the next turn
		for _, other := range b.others {
			<-other.Done()
		}
		b.Choose()
		c.asked()
		b.owner.end(b)
	})
	if background {
		const words = "The turn runs in the background. Call codex-wait with this threadId for its result."
		return b.interim(protocol.StatusRunning, words)
	}
	if c.Until != nil && errors.Is(context.Cause(c.Until), ErrLimit) {
		return c.Leave()
	}
	return nil
}

// Result waits for the turn of the call, and returns its result.
func (c *Call) Result(ctx context.Context) *mcptypes.CallToolResult {
	if errors.Is(Wait(c.until(ctx), false, c.begun), ErrLimit) {
		if r := c.Leave(); r != nil {
			return r
		}
	}
	if ctx.Err() != nil {
		c.GaveUp()
	}
	<-c.begun.Done() // a call that was cancelled says how its turn ended
	c.reads(c.begun)
	return c.begun.answer()
}

// Leave returns the result of a call that takes as long as it may, and whose turn continues in the background. It
// returns nil if the turn ends, or may not.
func (c *Call) Leave() *mcptypes.CallToolResult {
	if !c.detach() {
		return nil
	}
	c.asked()
	return c.begun.still(c)
}

// detach moves the turn of the call to the background, where codex-wait has its result. It returns false if there already
// is a result, or if too many run in the background.
func (c *Call) detach() bool {
	b := c.begun
	b.owner.mu.Lock()
	moves := !b.background && !b.over() && !b.owner.full()
	if moves {
		b.follows()
		ctx := b.owner.ctx
		b.background, b.follows = true, context.AfterFunc(ctx, func() { b.Interrupt(context.Cause(ctx)) })
	}
	background := b.background
	b.owner.mu.Unlock()
	if moves {
		c.keep()
	}
	return background
}

// keep keeps the turn of the call, which runs in the background: its thread open, also without its client, and what
// another server needs.
func (c *Call) keep() {
	if keeper := c.Turns.keeper.Load(); keeper != nil {
		for _, b := range c.begun.all() {
			keeper.Hold(b.ThreadID())
		}
	}
	if c.Kept != nil {
		c.Kept(c.begun.Turn)
	}
}

// InBackground reports whether the call has a turn that runs in the background, or has.
func (c *Call) InBackground() bool {
	return c.begun != nil && c.begun.inBackground()
}

// Message queues a turn of a thread that no tool started, as [thread.Thread.Begin] does, and
// keeps the diff of the turn for codex-show.
func (t *Table) Message(life context.Context, th *thread.Thread, a thread.Attend, in protocol.TurnInput) *turn.Turn {
	a.Turn = turn.New(t.options.Report)
	return th.Begin(life, a, in)
}
