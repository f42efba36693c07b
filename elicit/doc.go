// Package elicit asks the user of an MCP client for a decision with
// elicitation/create. It never takes an unclear answer for an approval.
//
// # The picture
//
//	                            ┌─ result ── Question.Read ──────┐
//	Question ── Params ── Caller                                 ├── Outcome
//	                            └─ error ─── Question.ReadError ─┘
//
// Everything but the [Caller] in the middle is a pure function. An [Asker] runs the whole
// chain for one client. It sends nothing to a client that cannot be asked, limits the
// number of open questions and the time for an answer, and always returns an [Outcome]:
//
//	asker := elicit.NewAsker(peer, elicit.Client{
//		Capabilities:    p.Capabilities, // of initialize
//		ProtocolVersion: "2025-06-18",
//	}, nil)
//	q := &elicit.Question{Message: "Delete the branch main?", NotDone: "it is still there"}
//	if out := asker.Ask(ctx, q); out.Decision.Approves() {
//		// delete it
//	}
//
// A *jsonrpc.Peer is a Caller. For another SDK, pass a [CallFunc]: a function that sends
// the request.
//
// # Forms
//
// A question with a [Question.Schema] asks for values, such as an environment to deploy to. An
// accepted form is [Outcome.Values]. An answer that lacks a required value, or has one that the
// schema does not allow, denies.
//
// # Questions in results
//
// Since MCP 2026-07-28 a server sends no requests. It answers a call with its questions,
// and the client repeats the call with the answers. An Asker cannot be used there; the
// two halves can:
//
//	the call's _meta ── RequestClient ─ Client.CanAsk
//	Question ────────── Question.InputRequest ──────▶ inputRequests["q1"] of the result
//	Outcome ◀────────── Question.ReadInputResponse ── inputResponses["q1"] of the repeated call
//
// The server does the rest. It keeps each open question and its call in memory, under a
// requestState that cannot be guessed. It accepts one answer to each question and ignores
// an answer without an open question. Question.ReadError returns the outcome when there is
// no answer: pass [ErrUnsupported] if the client cannot be asked, and
// context.DeadlineExceeded if it does not repeat the call.
//
// # What counts as an answer
//
// An answer approves only if all its parts do, and each is understood. An error, no answer in
// time and a client that cannot be asked deny, unless [Options] say otherwise. [Question.Read]
// has the table of answers.
//
// [Outcome.ForModel] and [Outcome.ForCaller] describe what happened, so that a model never
// reads that the user refused when no user was asked. A declined question does not prove
// that a human refused: some hosts decline on their own. Log [Outcome.Detail] at
// [Outcome.Level]. Do not log a question's message at the info level: a command may
// contain secrets.
//
// # What the human sees
//
// A model that wants an approval may have written parts of the message. The client may render Markdown or interpret
// terminal escapes. Show such parts with [ShowCode], [ShowText] or [ShowName]: they escape what a human
// would not see, or would see in the wrong place.
//
// # Questions of others
//
// [Asker.Forward] asks a question that is no approval, such as one of an MCP server that this program uses, and returns
// the client's answer as it is.
//
// # What it does not do
//
// It runs nothing, remembers no approvals and has no rules for what needs one. It starts
// no goroutines. All functions and methods are safe for concurrent use.
//
// # Where to go next
//
// [Options] sets what happens without a decision. The page "The questions on the wire" of
// the module's documentation has the messages. The specification is
// https://modelcontextprotocol.io/specification/2025-06-18/client/elicitation.
package elicit
