package approve

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
)

// end is how a question ended: by a rule, at one place, or at all of them.
type end struct {
	out    elicit.Outcome
	all    rank             // unless 0, it is the end at all places
	by     approval.Decider // the place, or what has ruled
	client *Client          // that was asked, or nil
	err    error            // the place could not show the question
	waited time.Duration    // how long the place took; the outcome may know better
	always bool             // the answer accepts a lasting rule
	verdict
}

// A rank says what an end is worth. An end of the highest rank decides.
type rank int

const (
	failed    rank = iota // the place could not show the question
	unable                // no place can
	undecided             // the place has no answer that counts
	closed                // from here on no other place can decide
	late                  // the time is over
	answered              // the place has an answer that counts
	over                  // the turn has ended, or the command that waits
	ruled                 // a rule has decided
)

func (e *end) rank() rank {
	switch reason := e.out.Reason; {
	case e.all > 0:
		return e.all
	case e.err != nil:
		return failed
	case e.void, e.out.ForCaller() != "", reason == elicit.ReasonInterrupted, reason == elicit.ReasonPeerGone:
		return undecided
	}
	return answered
}

// ends are how a question ended, in the order of their arrival.
type ends []end

// lasting is what is known of the lasting rule that an answer has accepted. The zero value is that of a question which
// offers none.
type lasting struct {
	offered  bool // the question shows it, and it is still the same rule
	confined bool // it is about commands, which it lets run in the sandbox
	words    string
	err      error // why it could not be kept
}

// decision returns what the ends decide. If no end does, the question is open: another place may decide, and the
// decision is for the case that none does. Elsewhere is false if no other place remains, so that refusals that
// clients gave by themselves count. Nothing changes a decision afterwards, but that one which cannot be recorded
// does not count.
//
// The first row of which there is an end decides. Only answers that count, and rules that may, approve.
//
//	end                                            decision                       by         open
//	a rule that may decide                         the rule's                     rule       no
//	the turn or the command that waits has ended   abort; denied for a command    nobody     no
//	answers that count                             the strictest, then the first  its place  no
//	the time is over                               OnTimeout                      nobody     no
//	an error by itself, and not elsewhere          OnError                        nobody     no
//	the first of these:                                                           nobody     yes
//	  an approval that does not count              denied
//	  a refusal that does not count                that one
//	  an error                                     OnError
//	  the place cannot be asked                    OnUnsupported
//	  the place has left                           abort
//	no place can show the question                 OnUnsupported                  nobody     yes
//
// An answer accepts, declines, cancels or is not understood. [Client.judge] and [end.byPerson] say which do not count.
// Before the ends are compared, [end.means] says what each means for the question.
func (all ends) decision(r *approval.Request, elsewhere bool, rule lasting) (d approval.Decision, open bool) {
	var voids, failures []string
	best, highest := end{out: elicit.Outcome{Decision: elicit.Denied}}, failed
	for _, e := range all {
		if e.byPerson(r); e.all == ruled && e.void {
			continue
		}
		e.always = e.out.Decision == elicit.ApprovedAlways
		alone := e.refuses() && !elsewhere
		e.void = e.void && !alone
		rank := e.rank()
		e.out = e.means(r, rank, rule)
		switch {
		case alone:
			rank = max(rank, closed)
		case e.void && elsewhere:
			voids = append(voids, e.automatic)
		case rank == failed:
			failures = append(failures, fmt.Sprintf("The %s could not show the question: %v.", e.by, e.err))
		}
		if rank > highest || rank == answered && rank == highest && e.out.Decision.Stricter(best.out.Decision) {
			best, highest = e, rank
		}
	}
	d = approval.Decision{Outcome: best.out, By: approval.ByNobody}
	after := ""
	switch {
	case highest == ruled:
		d.By = best.by
		return d, false
	case highest == over:
		return d, false
	case highest == answered:
		if d.By = best.by; best.client != nil {
			d.Client = best.client.name
		}
		after, failures = ". That did not count; the decision came from "+name(best.by)+".", nil
	case d.Decision.Approves():
		d.Outcome, after = notCounted(r, best.out), ". That did not count."
	case !best.void:
		voids = nil
	}
	for _, words := range voids {
		d.Remarks = append(d.Remarks, words+after)
	}
	d.Remarks = append(d.Remarks, failures...)
	switch {
	case d.Decision == elicit.ApprovedAlways:
		d.RuleWords = rule.words
	case best.always && d.Decision.Approves():
		words := "This was approved once. The rule that you accepted could not be kept: " + rule.err.Error()
		d.Remarks = append(d.Remarks, words)
	}
	return d, highest < closed
}

// refuses reports whether a client refused by itself, which does not count elsewhere.
func (e *end) refuses() bool { return e.void && isAnswer(e.out) && !e.out.Decision.Approves() }

// byPerson voids an approval of what only a person may approve, if no person can have given it: a rule, or any place
// that answered faster than a person can, even one that is no client.
func (e *end) byPerson(r *approval.Request) {
	if !onlyPerson(r) || !e.out.Decision.Approves() || e.err != nil {
		return
	}
	if e.all == ruled {
		e.void = true
		return
	}
	if took := cmp.Or(e.out.Took, e.waited); e.automatic == "" && took < Instant {
		how := cmp.Or(answers[e.out.Reason], "accepted")
		e.automatic = fmt.Sprintf("The %s %s %d ms after the question", e.by, how, max(took.Milliseconds(), 1))
	}
	e.void = e.automatic != ""
}

// onlyPerson reports whether only a decision that a person makes now approves.
func onlyPerson(r *approval.Request) bool { return r.Subject.Approver() != approval.Anyone }

// means returns what the outcome of an end means for the question. The outcome of a rule or a desk may have any word,
// or an approval that the question does not offer.
//
//	end                                                 means
//	no approval of a denial's overruling, by no person  denied: the denial stands, and the turn goes on
//	the end of a command that waits                     denied
//	a word that is no decision, an approval by nobody   denied
//	only in the sandbox, and that is not possible       denied
//	always, and no such rule was offered                denied
//	always, and the rule cannot be kept                 approved once, as the rule would allow it
//	for the session, and that was not offered           approved once
//	any other                                           what it says
func (e *end) means(r *approval.Request, rank rank, rule lasting) elicit.Outcome {
	out, effect := e.out, r.Subject.Effect()
	byPerson := rank == answered && (out.Took == 0 || out.Took >= Instant)
	switch {
	case effect == approval.Overrules && !byPerson && !out.Decision.Approves():
		if out.Decision = elicit.Denied; out.Reason == elicit.ReasonUnsupported { // without advice
			return elicit.Outcome{Decision: out.Decision, Reason: out.Reason, Detail: out.Detail}
		}
	case effect == approval.Reaches && rank == over:
		return denied("nobody answered before the command ended", "denied: the command has ended", slog.LevelInfo)
	case !out.Decision.Valid(), e.all > 0 && rank != ruled && out.Decision.Approves():
		out.Decision = elicit.Denied
	case out.Confined && r.Subject.Lasting().Command == nil && out.Decision != elicit.Abort:
		out.Decision = elicit.Denied
		out.Feedback = cmp.Or(out.Feedback, "it may run only in the sandbox, which is not possible")
	case e.always && (rank == ruled || !rule.offered):
		const words = "a lasting rule was accepted that no question offered"
		out = denied(cmp.Or(out.Feedback, words), "denied: "+words, slog.LevelWarn)
		out.Reason = elicit.ReasonNotUnderstood
	case e.always:
		if out.Confined = rule.confined; rule.err != nil {
			out.Decision, out.Level = elicit.Approved, slog.LevelWarn
			out.Detail = "approved once, because the rule could not be kept: " + rule.err.Error()
		}
	case (r.Question.Once || out.Confined) && out.Decision == elicit.ApprovedForSession:
		out.Decision = elicit.Approved
	}
	return out
}

// denied returns the outcome of a denial that no place gave.
func denied(feedback, detail string, level slog.Level) elicit.Outcome {
	return elicit.Outcome{
		Decision: elicit.Denied, Reason: elicit.ReasonDeclined, Feedback: feedback, Detail: detail, Level: level,
	}
}

// notCounted is the outcome of an approval that no person gave, and that does not count.
func notCounted(r *approval.Request, out elicit.Outcome) elicit.Outcome {
	words := "the approval came faster than a person can read, and so it does not count"
	if onlyPerson(r) {
		words = "the approval came faster than a person can read, and only a person may approve this"
	}
	return denied(words, "denied: "+words, out.Level)
}
