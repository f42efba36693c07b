package turn_test

import (
	"cmp"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// recorder is a turn and what the host of a thread does for it.
type recorder struct {
	*turn.Turn
	commands int // of the thread
}

func newWatch(o changes.Options) *recorder { return &recorder{Turn: turn.New(o)} }

func (r *recorder) Event(m protocol.EventMsg) {
	if _, begins := m.(protocol.ExecCommandBegin); begins {
		r.commands++
	}
	r.Turn.Add("", r.commands, m)
}

func (r *recorder) Asked(q *approval.Request) { r.Turn.Asked(asked(q)) }

func (r *recorder) Decided(q *approval.Request, d approval.Decision) { r.Turn.Decided(asked(q), d) }

func asked(q *approval.Request) *approval.Request {
	q.Question = cmp.Or(q.Question, &elicit.Question{})
	return q
}
