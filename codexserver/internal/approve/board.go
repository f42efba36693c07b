package approve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
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
	invite  func(words, where string)
	// Asks, unless nil, is called when somebody sees a question, once for each place.
	Asks func(*approval.Request)

	mu        sync.Mutex
	places    []*attachment // in the order of their arrival, the desk first
	questions map[*question]bool
	calls     calls
}

// New returns a board. If the desk is an [approval.Inviter] and another place cannot show a
// question, the board calls invite with the desk's words, and with where it can be answered if a client has
// answered by itself, else "". Nil ignores them.
func New(o *Options, invite func(words, where string)) *Board {
	b := &Board{options: o, log: o.logger(), invite: invite}
	if o.Desk != nil {
		b.Attach(newDesk(o.Desk, &o.Questions))
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
	d, ruled := b.rule(ctx, r)
	automatic := "" // what clients answered by themselves
	if !ruled {
		d, automatic = b.ask(ctx, r, comes)
	}
	d.Outcome = limited(r, d.Outcome)
	b.keepRule(r, &d, ruled)
	b.record(r, &d, evidence{automatic, time.Since(began)})
	if words := d.ForCaller(); words != "" {
		d.Remarks = append(d.Remarks, words)
	}
	facts := []any{"thread", r.Thread.ID, "decision", d.Decision, "by", string(d.By), "reason", string(d.Reason), "detail", d.Detail}
	if r.Thread.Principal != "" {
		facts = append(facts, "principal", r.Thread.Principal)
	}
	if automatic != "" {
		facts = append(facts, "automatic", automatic)
	}
	b.log.Log(ctx, max(d.Level, slog.LevelInfo), "approval", facts...)
	if desk := b.options.Desk; desk != nil {
		_ = guard(b.log, "Desk.Decided", func() error { desk.Decided(r, d); return nil })
	}
	return d
}

// record records the decision. An approval that cannot be recorded does not count: nothing runs
// that the record lacks.
func (b *Board) record(r *approval.Request, d *approval.Decision, e evidence) {
	err := guard(b.log, "Record", func() error {
		id, err := b.add(r, *d, e)
		b.keep(r, d, id)
		return err
	})
	if err == nil {
		return
	}
	b.log.Warn("approval not recorded", "error", err)
	if !d.Decision.Approves() {
		return
	}
	words := fmt.Sprintf("the approval could not be recorded, so it does not count: %v", err)
	d.Outcome = elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonDeclined, Feedback: words, Detail: words, Level: slog.LevelWarn}
	d.Remarks = append(d.Remarks, "Nothing was run: "+words+".")
}

// rule asks the rules. A rule that panics denies.
func (b *Board) rule(ctx context.Context, r *approval.Request) (d approval.Decision, ruled bool) {
	if r.Deny != "" {
		return approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonDeclined, Feedback: r.Deny}, By: approval.ByRule}, true
	}
	if isAccess(r) { // no rule decides about the configuration
		return d, false
	}
	err := guard(b.log, "Rules.Decide", func() error {
		d.Outcome, ruled = byRules(ctx, &b.options.Rules, r)
		return nil
	})
	if err != nil {
		d.Outcome, ruled = ruleFailed, true
	}
	if !ruled && ctx.Err() == nil {
		d.Outcome, ruled = b.kept(r)
	}
	d.By = approval.ByRule
	return d, ruled
}

// kept asks the rules that people accepted. They only allow.
func (b *Board) kept(r *approval.Request) (out elicit.Outcome, ruled bool) {
	exec, ok := r.Event.(protocol.ExecApprovalRequest)
	if !ok || b.Person(&exec) {
		return elicit.Outcome{}, false
	}
	number := 0
	err := guard(b.log, "Kept", func() (err error) {
		number, ruled, err = b.options.Kept.Allows(&exec, r.Thread.Principal)
		return err
	})
	if err != nil {
		b.log.Warn("the rules that people accepted allow nothing", "error", err)
		return elicit.Outcome{}, false
	}
	out.Decision, out.Level, out.Confined = elicit.Approved, slog.LevelInfo, true
	if out.Detail = "allowed by rules that a person accepted, in the sandbox"; number > 0 {
		out.Detail = fmt.Sprintf("allowed by rule %d, which a person accepted, in the sandbox", number)
	}
	return out, ruled
}

// ask asks the question at every place and waits for its end. It also returns what clients answered
// by themselves.
func (b *Board) ask(ctx context.Context, r *approval.Request, comes bool) (d approval.Decision, automatic string) {
	questions := b.options.Questions
	questions.Timeout = cmp.Or(questions.Timeout, r.Timeout)
	if comes && questions.Timeout < 0 {
		questions.Timeout = MaxOpen
	}
	bounded, cancel := questions.WithTimeout(ctx)
	defer cancel()
	best, notes := b.askAll(bounded, r, comes, func(e end, over bool) {
		if !over && (!comes || e.tried() || e.void != "") {
			b.sendInvitation(e)
		}
	})
	return b.decided(ctx, bounded, r, best, notes), strings.Join(notes.automatic, "; ")
}

// decided returns the decision for the end of a question.
func (b *Board) decided(ctx, bounded context.Context, r *approval.Request, best end, notes notes) approval.Decision {
	unanswered, failures := !best.answers(), notes.failures
	by := approval.ByNobody
	if !unanswered {
		by = best.by
	}
	switch {
	case ctx.Err() != nil:
		return approval.Decision{Outcome: r.Question.ReadError(context.Canceled, &b.options.Questions), By: approval.ByNobody}
	case unanswered && bounded.Err() != nil:
		return approval.Decision{Outcome: r.Question.ReadError(context.DeadlineExceeded, &b.options.Questions), By: by, Remarks: failures}
	case best.by == "":
		return approval.Decision{Outcome: r.Question.ReadError(elicit.ErrUnsupported, &b.options.Questions), By: by, Remarks: failures}
	case best.void != "": // and no other place has answered
		d := approval.Decision{Outcome: notCounted(r, best.out), By: by}
		for _, why := range notes.void {
			if best.out.Decision.Approves() {
				why += ". That did not count."
			}
			d.Remarks = append(d.Remarks, why)
		}
		d.Remarks = append(d.Remarks, failures...)
		return d
	case unanswered:
		return approval.Decision{Outcome: best.out, By: by, Remarks: failures}
	}
	d := approval.Decision{Outcome: best.out, By: by, Client: best.client}
	for _, why := range notes.void {
		d.Remarks = append(d.Remarks, why+". That did not count; the decision came from "+name(by)+".")
	}
	return d
}

// isDesk reports whether a place with a name is the desk.
func (b *Board) isDesk(by approval.Decider) bool {
	return b.options.Desk != nil && b.options.Desk.Name() == by
}

// name names a decider in sentences.
func name(by approval.Decider) string {
	switch by {
	case approval.ByPage:
		return "the approvals page"
	case approval.ByClient:
		return "another client"
	}
	return "the " + string(by)
}

// at says where a decider decided.
func (b *Board) at(by approval.Decider) string {
	if b.isDesk(by) {
		return "on " + name(by)
	}
	return "by " + name(by)
}

// sendInvitation sends the desk's invitation after another place could not show the
// question, and says so if a client has answered by itself.
func (b *Board) sendInvitation(e end) {
	if b.invite == nil || b.isDesk(e.by) || e.answers() {
		return
	}
	var all []string
	where := ""
	if e.void != "" {
		where = b.others()
		all = append(all, e.void+". The question stays open "+where+".")
	}
	if inviter, ok := b.options.Desk.(approval.Inviter); ok {
		var words string
		_ = guard(b.log, "Desk.Invite", func() error { words = inviter.Invite(); return nil })
		if words != "" {
			all = append(all, words)
		}
	}
	if len(all) > 0 {
		b.invite(strings.Join(all, " "), where)
	}
}

// others says where a question can be answered besides the client that asked.
func (b *Board) others() string {
	if b.options.Desk != nil {
		return b.at(b.options.Desk.Name())
	}
	return "for other clients, with codex-wait"
}

// attachment is an attached place.
type attachment struct {
	place Place
	ctx   context.Context // ends when the place leaves
	gone  bool            // its client had gone when it was asked last; the mutex guards it
}

// question is one open question.
type question struct {
	request *approval.Request
	ctx     context.Context // ends with the first answer, the time-out, or the turn
	ends    chan end
	over    chan struct{} // closed when the question is removed
	left    chan struct{} // has an element when a place has left; at most one
	asked   int           // places; the mutex guards it
}

// end is how a question ended at one place. By is never empty.
type end struct {
	out       elicit.Outcome
	by        approval.Decider
	err       error  // the place could not show the question
	void      string // the client answered by itself, or was not asked for that reason; what it did
	client    string // the name of the client that answered
	host      *Host  // that client, or nil
	automatic string // what the client answered by itself, "" for a person's answer
}

// answers reports whether the end is an answer that counts.
func (e *end) answers() bool { return e.by != "" && e.err == nil && e.void == "" && isAnswer(e.out) }

// tried reports whether the place was asked and has not just left: it answered somehow, or failed.
func (e *end) tried() bool {
	if e.err != nil {
		return !errors.Is(e.err, errOnlyPage)
	}
	return answered(e.out)
}

// notes are what happened to a question besides its decision.
type notes struct {
	failures  []string // why places could not show it
	void      []string // what clients answered by themselves that did not count
	automatic []string // all that clients answered by themselves
}

// MaxOpen is how long a question without a time-out waits for somebody who may come.
const MaxOpen = 24 * time.Hour

// withdrawal is how long places may take to return after their question is over.
const withdrawal = time.Second

// Attach adds a place. It is asked every question that is open now or later, until leave is
// called. Leave withdraws its open questions.
func (b *Board) Attach(place Place) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	a := &attachment{place: place, ctx: ctx}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.places = append(b.places, a)
	for q := range b.questions {
		b.askAt(q, a)
	}
	return func() {
		b.mu.Lock()
		b.places = slices.DeleteFunc(b.places, func(other *attachment) bool { return other == a })
		for q := range b.questions {
			q.leave()
		}
		b.mu.Unlock()
		cancel()
	}
}

// leave records that a place has left.
func (q *question) leave() {
	select {
	case q.left <- struct{}{}:
	default:
	}
}

// askAll asks a question at every place until ctx ends, and returns the answer that counts. If
// there is none, it returns the end at a place that could show the question, or the zero end if
// none could. It calls ended after each end, with whether the question is over. See [Board.Decide] for comes.
func (b *Board) askAll(ctx context.Context, r *approval.Request, comes bool, ended func(e end, over bool)) (best end, notes notes) {
	ctx, withdraw := context.WithCancelCause(ctx)
	q := &question{request: r, ctx: ctx, ends: make(chan end), over: make(chan struct{}), left: make(chan struct{}, 1)}
	defer close(q.over)
	defer withdraw(nil)
	if clients := b.open(q); clients == 0 {
		ended(end{by: approval.ByClient, out: r.Question.ReadError(elicit.ErrUnsupported, &b.options.Questions)}, false)
	}
	over := ctx.Done()
	var late <-chan time.Time
	var refused end // by a client that answered by itself
	for n := 0; b.pending(q, n, comes && ctx.Err() == nil); {
		var e end
		select {
		case e = <-q.ends:
			n++
		case <-q.left: // perhaps the last place where a person may answer
			if refused.by != "" && !best.answers() && ctx.Err() == nil && !b.elsewhere(refused.host) {
				best, notes.void = refused, nil
				withdraw(fmt.Errorf("%w: %s, %s", approval.ErrElsewhere, inWords(best.out.Decision), b.at(best.by)))
			}
			continue
		case <-over:
			over, late = nil, time.After(withdrawal)
			continue
		case <-late:
			b.log.Warn("a place does not return from a question that is over", "thread", r.Thread.ID)
			b.remove(q)
			return best, notes
		}
		if e.automatic != "" {
			notes.automatic = append(notes.automatic, e.automatic)
		}
		switch {
		case e.err != nil:
			if !errors.Is(e.err, errOnlyPage) {
				b.log.Warn("a place could not show a question", "place", string(e.by), "thread", r.Thread.ID, "error", e.err)
			}
			notes.failures = append(notes.failures, fmt.Sprintf("The %s could not show the question: %v.", e.by, e.err))
		case e.answers():
			withdraw(fmt.Errorf("%w: %s, %s", approval.ErrElsewhere, inWords(e.out.Decision), b.at(e.by)))
			if !best.answers() || e.out.Decision.Stricter(best.out.Decision) {
				best = e
			}
		case best.by == "":
			best = e
		case !best.answers() && ctx.Err() != nil:
			best.by = e.by // the last place that was asked
		}
		if e.void != "" && answered(e.out) && !e.out.Decision.Approves() {
			refused = e
			refused.void = ""
		}
		if e.void != "" && e.err == nil {
			notes.void = append(notes.void, e.void)
		}
		ended(e, ctx.Err() != nil)
		comes = comes && !e.tried()
	}
	return best, notes
}

// open adds a question and asks it at every place. It returns how many of them are clients.
func (b *Board) open(q *question) (clients int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.questions == nil {
		b.questions = map[*question]bool{}
	}
	b.questions[q] = true
	for _, a := range b.places {
		b.askAt(q, a)
		if !b.isDesk(a.place.Decider()) {
			clients++
		}
	}
	return clients
}

// pending reports whether the end at another place than the first n is to be awaited, or somebody who
// may come. If not, it removes the question, so that a place that is attached later is not asked.
func (b *Board) pending(q *question, n int, comes bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n < q.asked || comes {
		return true
	}
	delete(b.questions, q)
	return false
}

// remove removes a question.
func (b *Board) remove(q *question) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.questions, q)
}

// askAt asks a question at a place. The caller holds b.mu.
func (b *Board) askAt(q *question, a *attachment) {
	q.asked++
	ctx, cancel := context.WithCancel(q.ctx)
	stop := context.AfterFunc(a.ctx, cancel)
	go func() {
		defer cancel()
		defer stop()
		if h := hostOf(a.place); h != nil {
			defer context.AfterFunc(h.here, q.leave)()
		}
		e := b.answer(ctx, q.request, a.place)
		b.mu.Lock()
		a.gone = e.out.Reason == elicit.ReasonPeerGone
		b.mu.Unlock()
		select {
		case q.ends <- e:
		case <-q.over:
		}
	}()
}

// answer asks one place. A client that answered by itself may be not asked, or not counted.
func (b *Board) answer(ctx context.Context, r *approval.Request, at Place) end {
	e, h := end{by: at.Decider()}, hostOf(at)
	if h != nil {
		e.client, e.host = h.name, h
	}
	elsewhere := func() bool { return b.elsewhere(h) }
	if h.never() {
		e.err = errOnlyPage
		return e
	}
	if e.void = h.skip(); e.void != "" && elsewhere() {
		e.automatic, e.out = e.void, r.Question.ReadError(elicit.ErrUnsupported, nil)
		return e
	}
	e.void = ""
	if b.Asks != nil && ctx.Err() == nil && Shows(at) {
		b.Asks(r)
	}
	began := time.Now()
	e.err = guard(b.log, "Place.Ask", func() (err error) {
		e.out, err = at.Ask(ctx, r)
		return err
	})
	if e.err != nil {
		return e
	}
	var v verdict
	if ctx.Err() == nil {
		v = h.judge(e.out, elsewhere)
	}
	if human(r) {
		v = onlyPerson(v, e.by, e.out, time.Since(began))
	}
	e.automatic = v.automatic
	if v.void {
		e.void = v.automatic
	}
	return e
}

// elsewhere reports whether a question can be answered at another place than a host: at the desk,
// or by another client that is there and has not answered by itself.
func (b *Board) elsewhere(h *Host) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.places, func(a *attachment) bool {
		other := hostOf(a.place)
		return a.ctx.Err() == nil && !a.gone && (!isClient(a.place.Decider()) || other != nil && other != h && other.answers())
	})
}

// inWords says a decision in words.
func inWords(d elicit.Decision) string {
	switch d {
	case elicit.Approved:
		return "approved"
	case elicit.ApprovedForSession:
		return "approved for the session"
	case elicit.ApprovedAlways:
		return "approved, always"
	case elicit.Abort:
		return "denied, and the turn stopped"
	}
	return "denied"
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
// could not ask or has left, or if the question was withdrawn.
func isAnswer(out elicit.Outcome) bool {
	return out.ForCaller() == "" && out.Reason != elicit.ReasonInterrupted && out.Reason != elicit.ReasonPeerGone
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
