package turn_test

import (
	"cmp"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/transcript"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// recorder is a turn and what the host of a thread does for it.
type recorder struct {
	*turn.Turn
	log *transcript.Log
}

func newWatch(o changes.Options) *recorder {
	return &recorder{turn.New(o), transcript.New("")}
}

func (r *recorder) Event(m protocol.EventMsg) { r.Turn.Add(r.log, "", m) }

func (r *recorder) Asked(q *approval.Request) { r.Turn.Asked(r.log, asked(q)) }

func (r *recorder) Decided(q *approval.Request, d approval.Decision) {
	r.Turn.Decided(r.log, asked(q), d)
}

func asked(q *approval.Request) *approval.Request {
	q.Question = cmp.Or(q.Question, &elicit.Question{})
	return q
}

func newLog(t *testing.T) *transcript.Log {
	t.Helper()
	l := transcript.New(filepath.Join(t.TempDir(), "new"))
	t.Cleanup(l.Close)
	return l
}
