package mcptool

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/report"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Run runs a turn of a thread that no tool started, as [thread.Thread.Turn] does, and
// keeps the diff of the turn for codex-show.
func (t *Table) Run(ctx context.Context, th *thread.Thread, ticket *thread.Ticket, a thread.Attendance, in protocol.TurnInput) error {
	f := follower{Watcher: a.Watcher, report: report.New(t.options.Report)}
	number := 0
	roots := th.WritableRoots()
	if in.Context != nil {
		roots = in.Context.SandboxPolicy.WritableRoots
	}
	a.Watcher = f
	a.Begin = func(ctx context.Context) {
		number, _ = th.Trail().Count()
		f.report.Begin(ctx, th.Info(), nil, roots...)
	}
	err := th.Turn(ctx, ticket, a, in)
	f.report.End(err)
	if diff := f.report.Diff(); diff != "" {
		th.Trail().Changed(number, diff)
	}
	return err
}

// follower collects what a turn changes, in front of another watcher.
type follower struct {
	thread.Watcher
	report *report.Collector
}

// Ready implements [thread.Watcher].
func (f follower) Ready(ctx context.Context, m protocol.EventMsg) {
	f.report.Ready(ctx, m)
	f.Watcher.Ready(ctx, m)
}

// Event implements [thread.Watcher].
func (f follower) Event(thread string, e protocol.Event) {
	f.report.Event(e.Msg)
	f.Watcher.Event(thread, e)
}

// Asked implements [thread.Watcher].
func (f follower) Asked(r *approval.Request) {
	f.report.Asked(r)
	f.Watcher.Asked(r)
}

// Decided implements [thread.Watcher].
func (f follower) Decided(r *approval.Request, d approval.Decision) {
	f.report.Decided(r, d)
	f.Watcher.Decided(r, d)
}
