package approve

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
)

// end is how a question ended, at one place or at all of them.
type end struct {
	out  elicit.Outcome
	all  rank             // unless 0, it is the end at all places
	by   approval.Decider // the place
	host *Host            // that was asked, or nil
	err  error            // the place could not show the question
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
	over                  // the turn has ended
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

// decision returns what the ends decide. If no end does, the question is open: another place may decide, and the
// decision is for the case that none does. Elsewhere is false if no other place remains, so that refusals that
// clients gave by themselves count.
//
// The first row of which there is an end decides. Only answers that count can approve.
//
//	end                                            decision                       by         open
//	the turn has ended                             abort                          nobody     no
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
// An answer accepts, declines, cancels or is not understood. [Host.judge] and [end.onlyPerson] say which do not count.
func (all ends) decision(r *approval.Request, elsewhere bool) (d approval.Decision, open bool) {
	var voids, failures []string
	best, highest := end{out: elicit.Outcome{Decision: elicit.Denied}}, failed
	for _, e := range all {
		counts := e.refuses() && !elsewhere
		e.out, e.void = limited(r, e.out), e.void && !counts
		at := e.rank()
		switch {
		case counts:
			at = max(at, closed)
		case e.void && elsewhere:
			voids = append(voids, e.automatic)
		case at == failed:
			failures = append(failures, fmt.Sprintf("The %s could not show the question: %v.", e.by, e.err))
		}
		if at > highest || at == answered && at == highest && e.out.Decision.Stricter(best.out.Decision) {
			best, highest = e, at
		}
	}
	d = approval.Decision{Outcome: best.out, By: approval.ByNobody}
	after := ""
	switch {
	case highest == over:
		return d, false
	case highest == answered:
		if d.By = best.by; best.host != nil {
			d.Client = best.host.name
		}
		after, failures = ". That did not count; the decision came from "+name(best.by)+".", nil
	case d.Decision.Approves():
		d.Outcome, after = notCounted(r, best.out), ". That did not count."
	case !best.void:
		voids = nil
	}
	for _, did := range voids {
		d.Remarks = append(d.Remarks, did+after)
	}
	d.Remarks = append(d.Remarks, failures...)
	return d, highest < closed
}

// refuses reports whether a client refused by itself, which does not count elsewhere.
func (e *end) refuses() bool { return e.void && isAnswer(e.out) && !e.out.Decision.Approves() }
