// Package approval decides whether something is done that needs a person's approval.
//
//	                 ┌─ Rules ─────────── the user's configuration
//	Board.Decide ────┤
//	                 └─ Place, Place, … ─ a client, a page, a desk of your own
//	      │
//	      └─ Decision ── Record, log, every Desk
//
// An engine asks; [Board.Decide] returns one [Decision]. The rules come first. What they
// leave open is put to every place of the board at once. The first answer counts, and the
// question is withdrawn from the other places. Of two answers that arrive together the
// stricter one counts.
//
// A place that cannot show the question, or fails, leaves the decision to the others.
// When no place answers, the question is denied, with a reason for the model and for the
// caller. Decide always returns: when its context ends, when [Options].Questions.Timeout
// is over, and when foreign code panics.
//
// A [Relay] is a place for clients that may not approve: an approver's clients take its
// questions.
//
// Each decision is recorded once and logged once.
package approval
