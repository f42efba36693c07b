package board

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
)

// maxHeld is how long a relay holds a question that has no time-out.
const maxHeld = 24 * time.Hour

// Relay is a place whose questions are asked at other places, those of an approver's
// clients. A question waits until there is such a client. Relay is safe for concurrent use.
type Relay struct {
	options *elicit.Options
	log     *slog.Logger

	mu     sync.Mutex
	takers []*attachment
	open   []*heldQuestion
}

// heldQuestion is a question that a relay holds.
type heldQuestion struct {
	request *approval.Request
	ctx     context.Context // ends with the first answer, or with the question
	end     context.CancelFunc
	asking  sync.WaitGroup

	mu      sync.Mutex
	answers []elicit.Outcome
}

// NewRelay returns a relay without places, for boards with these options.
func NewRelay(o *Options) *Relay { return &Relay{options: &o.Questions, log: o.logger()} }

// Attach adds a place of an approver's client. It is asked every question that is open now
// or later, until leave is called.
func (r *Relay) Attach(p Place) (leave func()) {
	return attach(&r.mu, &r.takers, p, func(a *attachment) {
		for _, q := range r.open {
			r.askAt(q, a)
		}
	})
}

// Decider implements [Place].
func (*Relay) Decider() approval.Decider { return approval.ByApprover }

// Ask implements [Place]. A client of the approver that leaves, fails or cannot show the
// question does not decide it.
func (r *Relay) Ask(ctx context.Context, request *approval.Request) (elicit.Outcome, error) {
	bounded, cancel := context.WithTimeout(ctx, maxHeld)
	defer cancel()
	q := &heldQuestion{request: request}
	q.ctx, q.end = context.WithCancel(bounded)
	defer q.end()
	r.mu.Lock()
	r.open = append(r.open, q)
	for _, a := range r.takers {
		r.askAt(q, a)
	}
	r.mu.Unlock()
	<-q.ctx.Done()
	r.mu.Lock() // no place is asked from here on
	r.open = slices.DeleteFunc(r.open, func(other *heldQuestion) bool { return other == q })
	r.mu.Unlock()
	q.asking.Wait()
	if len(q.answers) > 0 {
		return slices.MaxFunc(q.answers, func(a, b elicit.Outcome) int {
			switch {
			case a.Decision.Stricter(b.Decision):
				return 1
			case b.Decision.Stricter(a.Decision):
				return -1
			}
			return 0
		}), nil
	}
	return request.Question.ReadError(bounded.Err(), r.options), nil
}

// askAt asks a question at a place. r.mu is held.
func (r *Relay) askAt(q *heldQuestion, a *attachment) {
	ctx, cancel := context.WithCancel(q.ctx)
	stop := context.AfterFunc(a.ctx, cancel)
	q.asking.Go(func() {
		defer cancel()
		defer stop()
		var out elicit.Outcome
		err := guard(r.log, "Place.Ask", func() (err error) {
			out, err = a.place.Ask(ctx, q.request)
			return err
		})
		if err != nil {
			r.log.Warn("an approver could not be shown a question", "thread", q.request.Thread.ID, "error", err)
			return
		}
		if !isAnswer(out) {
			return
		}
		q.mu.Lock()
		q.answers = append(q.answers, out)
		q.mu.Unlock()
		q.end()
	})
}
