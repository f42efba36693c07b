package mcptool

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/internal/report"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Run runs a turn of a thread that no tool started, as [thread.Thread.Turn] does, and
// keeps the diff of the turn for codex-show.
func (t *Table) Run(ctx context.Context, th *thread.Thread, ticket *thread.Ticket, a thread.Attend, in protocol.TurnInput) error {
	log := turnlog.NewTurn()
	f := follower{watch: report.New(log, t.options.Report)}
	number := 0
	a.Turn = log
	a.Observers = append([]thread.Observer{f}, a.Observers...)
	a.Begin = func(ctx context.Context) {
		number, _ = th.Log().Count()
		f.watch.Begin(ctx, th.Info(), th.Usage(), th.WritableRoots()...)
	}
	err := th.Turn(ctx, ticket, a, in)
	f.watch.End(err)
	if diff := f.watch.Diff(); diff != "" {
		th.Log().Changed(number, diff)
	}
	return err
}

// follower watches what a turn changes.
type follower struct {
	thread.NoQuestions
	watch *report.Watch
}

// Ready implements [thread.Waiter].
func (f follower) Ready(ctx context.Context, m protocol.EventMsg) { f.watch.Ready(ctx, m) }

// Event implements [thread.Observer].
func (f follower) Event(e thread.Event) { f.watch.Event(e.Step) }
