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
// stricter one counts: decision.go has the table.
//
// A place that fails or cannot show the question does not count. A question is open while a place is
// asked, or while somebody may come who can be asked; otherwise it is denied at once, with a reason for
// the model and for the caller. Decide always
// returns: also when its context ends, after [Options].Questions.Timeout, and when foreign
// code panics.
//
// A [Client] is a client that places ask, in one session. It knows whether the client answers by itself: such an answer
// counts as not given where another place can answer.
//
// What the rules say, the answers and what became of a lasting rule are inputs of the table. Nothing changes a decision
// afterwards, but that an approval which cannot be recorded does not count. Each decision is recorded once and logged
// once.
package approve
