// Package approve puts questions to everybody who may answer them, and returns one decision.
//
//	                 ┌─ approval.Rules ── the user's configuration
//	Board.Decide ────┤
//	                 └─ Place, Place, … ─ a client, a page, a desk of the embedder
//	      │
//	      └─ approval.Decision ── Record, log, the desk
//
// An engine asks, and [Board.Decide] returns one [approval.Decision]. The rules come first. If
// they do not decide, every place of the board is asked at once. The first answer counts, and
// the question is withdrawn from the other places. If two answers arrive together, the
// stricter one counts: [ends.decision] has the table.
//
// A place that fails or cannot show the question does not count. A question is open while a place is
// asked, or while somebody may come who can be asked; otherwise it is denied at once, with a reason for
// the model and for the caller. Decide always
// returns: also when its context ends, after [Options].Questions.Timeout, and when foreign
// code panics.
//
// A [Host] is a client that places ask, in one session. It knows whether the client answers by itself:
// such an answer counts as not given where another place can answer (host.go).
//
// Each decision is recorded once and logged once.
package approve
