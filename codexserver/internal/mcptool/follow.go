package mcptool

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/internal/report"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Run runs a turn of a thread that no tool started, as [thread.Thread.Turn] does, and
// keeps the diff of the turn for codex-show.
func (t *Table) Run(ctx context.Context, th *thread.Thread, ticket *thread.Ticket, a thread.Attendance, in protocol.TurnInput) error {
	f := follower{report.New(t.options.Report)}
	number := 0
	roots := th.WritableRoots()
	if in.Context != nil {
		roots = in.Context.SandboxPolicy.WritableRoots
	}
	a.Observers = append([]thread.Observer{f}, a.Observers...)
	a.Begin = func(ctx context.Context) {
		number, _ = th.Trail().Count()
		f.Begin(ctx, th.Info(), nil, roots...)
	}
	err := th.Turn(ctx, ticket, a, in)
	f.End(err)
	if diff := f.Diff(); diff != "" {
		th.Trail().Changed(number, diff)
	}
	return err
}

// follower collects what a turn changes.
type follower struct{ *report.Collector }

// Event implements [thread.Observer].
func (f follower) Event(e thread.Event) { f.Collector.Event(e.Msg) }
