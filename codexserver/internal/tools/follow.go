package tools

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Run runs a turn of a thread that no tool started, as [thread.Thread.Turn] does, and
// keeps the diff of the turn for codex-show.
func (t *Table) Run(ctx context.Context, th *thread.Thread, ticket *thread.Ticket, a thread.Attend, in protocol.TurnInput) error {
	log, number := turnlog.NewTurn(t.options.Report), 0
	a.Turn = log
	a.Begin = func(ctx context.Context) {
		number, _ = th.Log().Count()
		log.Begin(ctx, th.Info(), th.Usage(), th.WritableRoots()...)
	}
	err := th.Turn(ctx, ticket, a, in)
	log.End(err)
	if diff := log.Diff(); diff != "" {
		th.Log().Changed(number, diff)
	}
	return err
}
