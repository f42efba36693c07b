package approve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/slots"
	"github.com/codexmcp/codexmcp/internal/stack"
)

// Options are shared by the boards of one server. The zero value denies everything that was
// not approved, and records nothing.
type Options struct {
	// Questions says how answers are read, and what holds without one.
	Questions elicit.Options
	// Rules decide before a question is asked. None by default.
	Rules approval.Rules
	// Kept are the rules that people accepted. They decide what Rules leave open. None by
	// default.
	Kept *rulefile.Store
	// Desk is a place of every board, and is notified of every decision. None by
	// default.
	Desk approval.Desk
	// Record receives every decision. None by default.
	Record *record.Record
	// Logger logs every decision, panics, and failures of Record. Default: nothing is
	// logged.
	Logger *slog.Logger
}

// Board puts the questions of one thread to its places. It is safe for concurrent use.
type Board struct {
	options *Options
	log     *slog.Logger
	invite  func(words, where string)
	// Asks, unless nil, is called when somebody sees a question, once for each place.
	Asks func()

	mu        sync.Mutex
	places    []*attachment // in the order of their arrival, the desk first
	questions map[*question]bool
	inTurn    slots.Slots
}

// New returns a board. If the desk is an [approval.Inviter] and another place cannot show a
// question, the board calls invite with the desk's words, and with where it can be answered if a client has
// answered by itself, else "". Nil ignores them.
func New(o *Options, invite func(words, where string)) *Board {
	log := cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	b := &Board{options: o, log: log, invite: invite, questions: map[*question]bool{}}
	if o.Desk != nil {
		b.Attach(placeOf(o.Desk, o.Questions))
	}
	return b
}

// Decide returns the decision about r. It always returns, at the latest soon after ctx
// ends. The end of ctx decides [elicit.Abort].
//
// The question is open while a place is asked. If comes is true, somebody may attach another place later,
// and the question is open meanwhile, for a day without a time-out. It is not if a place that
// was asked could not show it, or gave an answer that does not count. Otherwise it is decided at once.
func (b *Board) Decide(ctx context.Context, r *approval.Request, comes bool) approval.Decision {
	began := time.Now()
	automatic, rule := "", 0
	d, open := b.rule(ctx, r).decision(r, true, lasting{})
	if open {
		if leave, err := b.takeTurn(ctx); err == nil { // else the end of ctx decides
			defer leave()
		}
		d, rule, automatic = b.ask(ctx, r, comes)
	}
	b.record(r, &d, record.Verdict{Automatic: automatic, Rule: rule, Waited: time.Since(began).Milliseconds()})
	if words := d.ForCaller(); words != "" {
		d.Remarks = append(d.Remarks, words)
	}
	facts := []any{
		"thread", r.Thread.ID, "decision", d.Decision, "by", string(d.By),
		"reason", string(d.Reason), "detail", d.Detail,
	}
	if r.Thread.Principal != "" {
		facts = append(facts, "principal", r.Thread.Principal)
	}
	if automatic != "" {
		facts = append(facts, "automatic", automatic)
	}
	b.log.Log(ctx, max(d.Level, slog.LevelInfo), "approval", facts...)
	if desk := b.options.Desk; desk != nil {
		_ = stack.Guard(b.log, "Desk.Decided", func() error { desk.Decided(r, d); return nil })
	}
	return d
}

// AskInTurn has later questions wait for a slot that several boards share, so that a person gets them one at a time. What
// rules decide does not wait. Nil is no limit.
func (b *Board) AskInTurn(s slots.Slots) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inTurn = s
}

func (b *Board) takeTurn(ctx context.Context) (leave func(), err error) {
	b.mu.Lock()
	s := b.inTurn
	b.mu.Unlock()
	return s.Take(ctx)
}

// attachment is an attached place.
type attachment struct {
	place *Place
	ctx   context.Context // ends when the place leaves
	gone  bool            // its client had gone when it was asked last; the mutex guards it
}

// Attach adds a place. It is asked every question that is open now or later, until leave is
// called. Leave withdraws its open questions.
func (b *Board) Attach(place *Place) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	a := &attachment{place: place, ctx: ctx}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.places = append(b.places, a)
	for q := range b.questions {
		q.askAt(a)
	}
	return func() {
		b.mu.Lock()
		b.places = slices.DeleteFunc(b.places, func(other *attachment) bool { return other == a })
		for q := range b.questions {
			q.leaves()
		}
		b.mu.Unlock()
		cancel()
	}
}

// MaxOpen is how long a question without a time-out waits for somebody who may come.
const MaxOpen = 24 * time.Hour

// withdrawal is how long places may take to return after their question is over.
const withdrawal = time.Second

// question is one question, from the first place to its decision.
type question struct {
	request  *approval.Request
	board    *Board
	comes    bool            // somebody may come who can be asked
	ctx      context.Context // ends with the first answer, the time-out, or the turn
	withdraw context.CancelCauseFunc
	arrive   chan end
	over     chan struct{} // closed when nobody reads arrive any more
	left     chan struct{} // has an element when a place has left; at most one
	asked    int           // places; the board's mutex guards it

	ends      ends
	automatic []string // what clients answered by themselves
}

// ask asks the question at every place and waits for its end. It also returns the number of the lasting rule that is
// kept, 0 for none, and what clients answered by themselves. See [Board.Decide] for comes.
func (b *Board) ask(
	ctx context.Context, r *approval.Request, comes bool,
) (d approval.Decision, rule int, automatic string) {
	o := b.options.Questions
	o.Timeout = cmp.Or(o.Timeout, r.Timeout)
	if comes && o.Timeout < 0 {
		o.Timeout = MaxOpen
	}
	bounded, cancel := o.WithTimeout(ctx)
	defer cancel()
	q := &question{
		request: r, board: b, comes: comes,
		arrive: make(chan end), over: make(chan struct{}), left: make(chan struct{}, 1),
	}
	q.ctx, q.withdraw = context.WithCancelCause(bounded)
	elsewhere := q.collect()
	last, why := unable, elicit.ErrUnsupported
	switch {
	case ctx.Err() != nil:
		last, why = over, context.Canceled
	case bounded.Err() != nil:
		last, why = late, context.DeadlineExceeded
	}
	d, rule = b.decided(r, append(q.ends, end{all: last, out: q.without(why)}), elsewhere)
	return d, rule, strings.Join(q.automatic, "; ")
}

// without returns the outcome of the question without an answer.
func (q *question) without(why error) elicit.Outcome {
	return q.request.Question.ReadError(why, &q.board.options.Questions)
}

// collect asks the question and collects its ends, until all places have returned and nobody may come. It reports
// whether another place remained that could answer, see [ends.decision].
func (q *question) collect() (elsewhere bool) {
	defer close(q.over)
	defer q.withdraw(nil)
	if q.open() == 0 {
		q.invite(&end{by: approval.ByClient, out: q.without(elicit.ErrUnsupported)})
	}
	elsewhere = true
	var refused end // the last that a client gave by itself
	over := q.ctx.Done()
	var late <-chan time.Time
	for n := 0; q.pending(n); {
		var last end
		select {
		case last = <-q.arrive:
			n++
			if q.ended(&last); last.refuses() {
				refused = last
			}
		case <-q.left: // perhaps the last place where a person may answer
			if refused.by == "" || q.ctx.Err() != nil {
				continue
			}
			last = refused
			elsewhere = q.board.elsewhere(last.client)
		case <-over:
			over, late = nil, time.After(withdrawal)
			continue
		case <-late:
			q.board.log.Warn("a place does not return from a question that is over", "thread", q.request.Thread.ID)
			n = math.MaxInt
			continue
		}
		if _, open := q.ends.decision(q.request, elsewhere, lasting{}); !open {
			words := cmp.Or(inWords[last.out.Decision], "denied")
			q.withdraw(fmt.Errorf("%w: %s, %s", approval.ErrElsewhere, words, at(last.by)))
		}
	}
	return elsewhere
}

// open adds the question to the board and asks it at every place. It returns how many of them are clients.
func (q *question) open() (clients int) {
	b := q.board
	b.mu.Lock()
	defer b.mu.Unlock()
	b.questions[q] = true
	for _, a := range b.places {
		q.askAt(a)
		if isClient(a.place.decider()) {
			clients++
		}
	}
	return clients
}

// pending reports whether the end at another place than the first n is to be awaited, or somebody who
// may come. If not, it removes the question, so that a place that is attached later is not asked.
func (q *question) pending(n int) bool {
	q.board.mu.Lock()
	defer q.board.mu.Unlock()
	if n < q.asked || q.comes && q.ctx.Err() == nil {
		return true
	}
	delete(q.board.questions, q)
	return false
}

// leaves records that a place has left.
func (q *question) leaves() {
	select {
	case q.left <- struct{}{}:
	default:
	}
}

// askAt asks the question at a place. The caller holds the board's mutex.
func (q *question) askAt(a *attachment) {
	q.asked++
	ctx, cancel := context.WithCancel(q.ctx)
	stop := context.AfterFunc(a.ctx, cancel)
	go func() {
		defer cancel()
		defer stop()
		if c := a.place.Client; c != nil {
			defer context.AfterFunc(c.here, q.leaves)()
		}
		e := q.answer(ctx, a.place)
		q.board.mu.Lock()
		a.gone = e.out.Reason == elicit.ReasonPeerGone
		q.board.mu.Unlock()
		select {
		case q.arrive <- e:
		case <-q.over:
		}
	}()
}

// answer asks one place. A client that answered by itself may be not asked, or not counted.
func (q *question) answer(ctx context.Context, place *Place) end {
	b, client := q.board, place.Client
	e := end{by: place.decider(), client: client}
	elsewhere := func() bool { return b.elsewhere(client) }
	if client.never() {
		e.err, e.out = errOnlyPage, q.without(elicit.ErrUnsupported)
		return e
	}
	if why := client.skip(); why != "" && elsewhere() {
		e.verdict, e.out = verdict{why, true}, q.request.Question.ReadError(elicit.ErrUnsupported, nil)
		return e
	}
	if b.Asks != nil && ctx.Err() == nil && place.shows() {
		b.Asks()
	}
	began := time.Now()
	e.err = stack.Guard(b.log, "Place.Ask", func() (err error) {
		e.out, err = place.Ask(ctx, q.request)
		return err
	})
	e.waited = time.Since(began)
	if e.err != nil {
		return e
	}
	if ctx.Err() == nil {
		e.verdict = client.judge(e.out, elsewhere)
	}
	e.byPerson(q.request)
	return e
}

// ended adds the end at a place.
func (q *question) ended(e *end) {
	// Its timer may be late, too.
	if limit, has := q.ctx.Deadline(); has && e.out.Decision.Approves() && time.Now().After(limit) {
		e.out = q.without(context.DeadlineExceeded)
	}
	q.ends = append(q.ends, *e)
	if e.automatic != "" {
		q.automatic = append(q.automatic, e.automatic)
	}
	broke := e.err != nil && !errors.Is(e.err, errOnlyPage)
	if broke {
		q.board.log.Warn("a place could not show a question",
			"place", string(e.by), "thread", q.request.Thread.ID, "error", e.err)
	}
	q.comes = q.comes && !broke && !isAnswer(e.out)
	q.invite(e)
}

// invite sends the desk's invitation after another place could not show the question, unless somebody may come who
// can be asked. It says so if a client has answered by itself.
func (q *question) invite(e *end) {
	b := q.board
	if b.invite == nil || !isClient(e.by) || e.rank() == answered || q.ctx.Err() != nil || q.comes && !e.void {
		return
	}
	var all []string
	where := ""
	if e.void {
		if where = "for other clients, with codex-wait"; b.options.Desk != nil {
			where = at(b.options.Desk.Name())
		}
		all = append(all, e.automatic+". The question stays open "+where+".")
	}
	if inviter, ok := b.options.Desk.(approval.Inviter); ok {
		var words string
		_ = stack.Guard(b.log, "Desk.Invite", func() error { words = inviter.Invite(); return nil })
		if words != "" {
			all = append(all, words)
		}
	}
	if len(all) > 0 {
		b.invite(strings.Join(all, " "), where)
	}
}

// name names a decider in sentences.
func name(by approval.Decider) string {
	names := map[approval.Decider]string{approval.ByPage: "the approvals page", approval.ByClient: "another client"}
	return cmp.Or(names[by], "the "+string(by))
}

// at says where a decider decided.
func at(by approval.Decider) string {
	if isClient(by) {
		return "by " + name(by)
	}
	return "on " + name(by)
}

// elsewhere reports whether a question can be answered at another place than a client: at the desk,
// or by another client that is there and has not answered by itself.
func (b *Board) elsewhere(c *Client) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.places, func(a *attachment) bool {
		other := a.place.Client
		answers := !isClient(a.place.decider()) || other != nil && other != c && other.answers()
		return a.ctx.Err() == nil && !a.gone && answers
	})
}

// inWords says decisions in words. Any other is a denial.
var inWords = map[elicit.Decision]string{
	elicit.Approved:           "approved",
	elicit.ApprovedForSession: "approved for the session",
	elicit.ApprovedAlways:     "approved, always",
	elicit.Abort:              "denied, and the turn stopped",
}
