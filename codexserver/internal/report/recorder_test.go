package report_test

import (
	"cmp"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/report"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// recorder is a watch and what the host of a thread does for it.
type recorder struct {
	*report.Watch
	turn *turnlog.Turn
	log  *turnlog.Log
}

func newWatch(o report.Options) *recorder {
	turn := turnlog.NewTurn()
	return &recorder{report.New(turn, o), turn, turnlog.NewStore(turnlog.MaxInMemory).New()}
}

func (r *recorder) Event(m protocol.EventMsg) {
	_, step := r.log.Add(r.turn, "", m)
	r.Watch.Event(step)
}

func (r *recorder) Asked(q *approval.Request) { r.log.Asked(r.turn, asked(q)) }

func (r *recorder) Decided(q *approval.Request, d approval.Decision) {
	r.log.Decided(r.turn, asked(q), d)
}

func asked(q *approval.Request) *approval.Request {
	q.Question = cmp.Or(q.Question, &elicit.Question{})
	return q
}
