package approval

import (
	"context"
	"time"

	"github.com/codexmcp/codexmcp/elicit"
)

// question is one open question. The board's mutex guards the counters.
type question struct {
	request  *Request
	ctx      context.Context // ends with the first answer, the time-out, or the turn
	withdraw context.CancelCauseFunc
	ends     chan end
	over     chan struct{} // closed when the question is taken down

	stood, ended int // places where it stood, and those whose end was awaited
}

// end is how a question ended at one place. By is never empty.
type end struct {
	out elicit.Outcome
	by  Decider
	err error // the place could not show the question
}

// withdrawal is how long a place may take to return from a question that is over.
const withdrawal = time.Second

// next returns the end of the question at the next place. It returns false when
// the question is over and no place returns from it.
func (q *question) next() (end, bool) {
	select {
	case e := <-q.ends:
		return e, true
	case <-q.ctx.Done():
	}
	timer := time.NewTimer(withdrawal)
	defer timer.Stop()
	select {
	case e := <-q.ends:
		return e, true
	case <-timer.C:
		return end{}, false
	}
}
