package turnlog_test

import (
	"cmp"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// recorder is a turn and what the host of a thread does for it.
type recorder struct {
	*turnlog.Turn
	log *turnlog.Log
}

func newWatch(o turnlog.Options) *recorder {
	return &recorder{turnlog.NewTurn(o), turnlog.NewStore(turnlog.MaxInMemory).New()}
}

func (r *recorder) Event(m protocol.EventMsg) { r.log.Add(r.Turn, "", m) }

func (r *recorder) Asked(q *approval.Request) { r.log.Asked(r.Turn, asked(q)) }

func (r *recorder) Decided(q *approval.Request, d approval.Decision) {
	r.log.Decided(r.Turn, asked(q), d)
}

func asked(q *approval.Request) *approval.Request {
	q.Question = cmp.Or(q.Question, &elicit.Question{})
	return q
}
