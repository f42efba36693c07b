package board

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Options are shared by the boards of one server. The zero value denies everything that was
// not approved, and records nothing.
type Options struct {
	// Questions says how answers are read, and what holds without one.
	Questions elicit.Options
	// Rules decide before a question is asked. None by default.
	Rules approval.Rules
	// Desk is a place of every board, and is notified of every decision. None by
	// default.
	Desk approval.Desk
	// Approver is the principal whose clients answer by a [Relay]. None by default.
	Approver string
	// Record receives every decision. None by default.
	Record *Record
	// Logger logs every decision, panics, and failures of Record. Default: nothing is
	// logged.
	Logger *slog.Logger
}

func (o *Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// Board puts the questions of one thread to its places. It is safe for concurrent use.
type Board struct {
	options *Options
	log     *slog.Logger
	invite  func(words string)

	mu        sync.Mutex
	places    []*attachment // in the order of their arrival, the desk first
	questions map[*question]bool
}

// attachment is a place of a board or a relay.
type attachment struct {
	place Place
	ctx   context.Context // ends when the place leaves
}

// question is one open question. The board's mutex guards the counters.
type question struct {
	request  *approval.Request
	ctx      context.Context // ends with the first answer, the time-out, or the turn
	withdraw context.CancelCauseFunc
	ends     chan end
	over     chan struct{} // closed when the question is removed

	asked, ended int // places that were asked, and places whose end was awaited
}

// end is how a question ended at one place. By is never empty.
type end struct {
	out elicit.Outcome
	by  approval.Decider
	err error // the place could not show the question
}

// withdrawal is how long a place may take to return after its question is over.
const withdrawal = time.Second

// New returns a board. If the desk is an [approval.Inviter] and another place cannot show a
// question, the board calls invite with the desk's words. Nil ignores them.
func New(o *Options, invite func(words string)) *Board {
	b := &Board{options: o, log: o.logger(), invite: invite, questions: map[*question]bool{}}
	if o.Desk != nil {
		b.Attach(deskPlace{o.Desk, &o.Questions})
	}
	return b
}

// Attach adds a place. It is asked every question that is open now or later, until leave is
// called. Leave withdraws its open questions.
func (b *Board) Attach(p Place) (leave func()) {
	return attach(&b.mu, &b.places, p, func(a *attachment) {
		for q := range b.questions {
			b.askAt(q, a)
		}
	})
}

// attach adds a place to a list that mu guards, and calls ask with it while mu is held.
// Leave removes the place, and withdraws its questions.
func attach(mu *sync.Mutex, list *[]*attachment, p Place, ask func(*attachment)) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	a := &attachment{place: p, ctx: ctx}
	mu.Lock()
	defer mu.Unlock()
	*list = append(*list, a)
	ask(a)
	return func() {
		mu.Lock()
		*list = slices.DeleteFunc(*list, func(other *attachment) bool { return other == a })
		mu.Unlock()
		cancel()
	}
}

// Decide returns the decision about r. It always returns, at the latest soon after ctx
// ends. The end of ctx decides [elicit.Abort].
func (b *Board) Decide(ctx context.Context, r *approval.Request) approval.Decision {
	d, ruled := b.rule(ctx, r)
	if !ruled {
		d = b.ask(ctx, r)
	}
	d.Outcome = limited(r, d.Outcome)
	if words := d.ForCaller(); words != "" {
		d.Remarks = append(d.Remarks, words)
	}
	facts := []any{"thread", r.Thread.ID, "decision", d.Decision, "by", string(d.By), "reason", string(d.Reason), "detail", d.Detail}
	if r.Thread.Principal != "" {
		facts = append(facts, "principal", r.Thread.Principal)
	}
	b.log.Log(ctx, max(d.Level, slog.LevelInfo), "approval", facts...)
	if err := guard(b.log, "Record", func() error { return b.options.Record.add(r, d, b.options.Approver) }); err != nil {
		b.log.Warn("approval not recorded", "error", err)
	}
	if desk := b.options.Desk; desk != nil {
		_ = guard(b.log, "Desk.Decided", func() error { desk.Decided(r, d); return nil })
	}
	return d
}

// rule asks the rules. A rule that panics denies.
func (b *Board) rule(ctx context.Context, r *approval.Request) (d approval.Decision, ruled bool) {
	if r.Deny != "" {
		return approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonDeclined, Feedback: r.Deny}, By: approval.ByRule}, true
	}
	err := guard(b.log, "Rules.Decide", func() error {
		d.Outcome, ruled = decide(ctx, &b.options.Rules, r)
		return nil
	})
	if err != nil {
		d.Outcome, ruled = ruleFailed, true
	}
	d.By = approval.ByRule
	return d, ruled
}

// ask asks the question at every place and waits for its end.
func (b *Board) ask(ctx context.Context, r *approval.Request) approval.Decision {
	questions := b.options.Questions
	questions.Timeout = cmp.Or(questions.Timeout, r.Patience)
	bounded, cancel := questions.WithTimeout(ctx)
	defer cancel()
	q := b.open(bounded, r)
	best, failures := b.await(q)
	b.close(q)

	unanswered := best.by == "" || !isAnswer(best.out)
	by := cmp.Or(best.by, approval.ByClient)
	switch {
	case ctx.Err() != nil:
		return approval.Decision{Outcome: r.Question.ReadError(context.Canceled, &b.options.Questions), By: approval.ByClient}
	case unanswered && bounded.Err() != nil:
		return approval.Decision{Outcome: r.Question.ReadError(context.DeadlineExceeded, &b.options.Questions), By: by, Remarks: failures}
	case best.by == "":
		return approval.Decision{Outcome: r.Question.ReadError(elicit.ErrUnsupported, &b.options.Questions), By: by, Remarks: failures}
	case unanswered:
		return approval.Decision{Outcome: best.out, By: by, Remarks: failures}
	}
	return approval.Decision{Outcome: best.out, By: by}
}

// open asks a question at every place.
func (b *Board) open(ctx context.Context, r *approval.Request) *question {
	q := &question{request: r, ends: make(chan end), over: make(chan struct{})}
	q.ctx, q.withdraw = context.WithCancelCause(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.questions[q] = true
	for _, a := range b.places {
		b.askAt(q, a)
	}
	return q
}

// close removes the question from the board and from its places.
func (b *Board) close(q *question) {
	b.mu.Lock()
	delete(b.questions, q)
	b.mu.Unlock()
	q.withdraw(nil)
	close(q.over)
}

// await waits for the end of the question at its places and returns the answer that counts.
// If there is no answer, it returns the end at a place that could show the question, or the
// zero end if none could.
func (b *Board) await(q *question) (best end, failures []string) {
	for b.pending(q) {
		e, ok := q.next()
		if !ok {
			b.log.Warn("a place does not return from a question that is over", "thread", q.request.Thread.ID)
			break
		}
		switch {
		case e.err != nil:
			b.log.Warn("a place could not show a question", "place", string(e.by), "thread", q.request.Thread.ID, "error", e.err)
			failures = append(failures, fmt.Sprintf("The %s could not show the question: %v.", e.by, e.err))
		case isAnswer(e.out):
			q.withdraw(approval.ErrElsewhere)
			if best.by == "" || !isAnswer(best.out) || e.out.Decision.Stricter(best.out.Decision) {
				best = e
			}
		case best.by == "":
			best = e
		case !isAnswer(best.out) && q.ctx.Err() != nil:
			best.by = e.by // the last place that was asked
		}
		b.sendInvitation(q, e)
	}
	return best, failures
}

// next returns the end of the question at the next place. It returns false if the question
// is over but the places do not return.
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

// pending reports whether the end at another place is to be awaited. If not, it removes the
// question from the board, so that a place that is attached later is not asked.
func (b *Board) pending(q *question) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q.ended == q.asked {
		delete(b.questions, q)
		return false
	}
	q.ended++
	return true
}

// askAt asks the question at a place. b.mu is held.
func (b *Board) askAt(q *question, a *attachment) {
	q.asked++
	ctx, cancel := context.WithCancel(q.ctx)
	stop := context.AfterFunc(a.ctx, cancel)
	go func() {
		defer cancel()
		defer stop()
		e := end{by: a.place.Decider()}
		e.err = guard(b.log, "Place.Ask", func() (err error) {
			e.out, err = a.place.Ask(ctx, q.request)
			return err
		})
		select {
		case q.ends <- e:
		case <-q.over:
		}
	}()
}

// sendInvitation sends the desk's invitation after another place could not show the
// question.
func (b *Board) sendInvitation(q *question, e end) {
	inviter, ok := b.options.Desk.(approval.Inviter)
	if !ok || b.invite == nil || e.by == approval.ByDesk || e.err == nil && isAnswer(e.out) || q.ctx.Err() != nil {
		return
	}
	var words string
	_ = guard(b.log, "Desk.Invite", func() error { words = inviter.Invite(); return nil })
	if words != "" {
		b.invite(words)
	}
}

var errPanic = errors.New("it panicked")

// guard calls foreign code. If that panics, guard logs the panic and returns errPanic.
func guard(log *slog.Logger, name string, call func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("panic", "in", name, "value", v, "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	return call()
}

// isAnswer reports whether a person decided at the place. It returns false if the place
// could not ask, or if the question was withdrawn.
func isAnswer(out elicit.Outcome) bool {
	return out.ForCaller() == "" && out.Reason != elicit.ReasonInterrupted
}

// limited returns the outcome with a decision that the request offers. The outcome of a
// rule or a desk may have any word, or an approval that the request does not offer.
func limited(r *approval.Request, out elicit.Outcome) elicit.Outcome {
	exec, _ := r.Event.(protocol.ExecApprovalRequest)
	switch {
	case !out.Decision.Valid():
		out.Decision = elicit.Denied
	case out.Confined && !exec.Confinable && out.Decision != elicit.Abort:
		out.Decision = elicit.Denied
		out.Feedback = cmp.Or(out.Feedback, "it may run only in the sandbox, which is not possible")
	case (r.Question.Once || out.Confined) && out.Decision == elicit.ApprovedForSession:
		out.Decision = elicit.Approved
	}
	return out
}
