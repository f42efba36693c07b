// Package elicit asks the user of an MCP client for a decision, by way of
// elicitation/create, and never takes an unclear answer for an approval.
//
// # The picture
//
//	ExecQuestion ─┐                        ┌─ result ── Question.Read ──────┐
//	PatchQuestion ┼─ Question ─ Params ─ Caller                             ├─ Outcome
//	(your own) ───┘                        └─ error ─── Question.ReadError ─┘
//
// Everything but the [Caller] in the middle is a pure function. An [Asker] puts them in a
// row for one client: it sends nothing to a client that cannot be asked, keeps the number
// of open questions and the time for an answer in bounds, and always comes back with an
// [Outcome]:
//
//	asker := elicit.NewAsker(peer, elicit.Client{
//		Capabilities:    capabilities, // as initialize brought them, raw
//		ProtocolVersion: "2025-06-18",
//	}, nil)
//	exec := elicit.ExecQuestion{Command: []string{"git", "init"}, Cwd: "/work"}
//	if out := asker.Ask(ctx, exec.Question()); out.Decision == elicit.Approved {
//		// run it
//	}
//
// A *jsonrpc.Peer is a Caller. For another SDK, wrap a function that sends the request in
// a [CallFunc].
//
// # Questions in results
//
// Since MCP 2026-07-28 a server sends no requests: it answers a call with its questions,
// and the client repeats the call with the answers. There is nothing to call, so an Asker
// has no part in it. The two halves are
//
//	the call's _meta ── RequestClient ─ Client.CanAsk
//	Question ────────── Question.InputRequest ──────▶ inputRequests["q1"] of the result
//	Outcome ◀────────── Question.ReadInputResponse ── inputResponses["q1"] of the repeated call
//
// The server does the rest: it keeps each open question in memory, with the call it
// belongs to, by a requestState that cannot be guessed, and lets it be answered once. An
// answer without an open question does not count. If the client cannot be asked or does
// not come back, Question.ReadError returns the outcome, from [ErrUnsupported] or
// context.DeadlineExceeded.
//
// # What counts as an answer
//
// MCP's action is the primary signal; a decision in the content may say more, and so may
// one next to the action, which Codex's own server demanded and its clients learned to
// send. The decisions are approved, approved_for_session, denied and abort; content may
// also spell them otherwise (approve, no, a boolean named approved).
//
//	answer                                      decision
//	accept, alone or with approved              approved
//	accept with one of the other decisions      that one
//	accept with any other decision              denied, not understood
//	decline                                     denied, the turn continues
//	cancel                                      abort, the turn ends (OnCancel)
//	another action                              denied, not understood
//	{"decision": …} and no action               that one, in its exact spelling;
//	                                            in inputResponses not understood
//	parts that contradict each other            the most restrictive of them
//	duplicate members, {"Action": …}            denied, not understood
//	neither action nor decision, no object      denied, not understood
//	an error                                    denied (OnError)
//	none, for the client cannot be asked        denied (OnUnsupported)
//	none in time                                denied (OnTimeout)
//	none before the turn ended, connection lost abort
//
// [Outcome.ForModel] and [Outcome.ForCaller] say in words what happened, so that a model
// never reads that a user refused who was not asked. A declined question does not prove
// that a human refused: some hosts decline by themselves. Log [Outcome.Detail] at
// [Outcome.Level]; do not log a question's message at the info level, for a command may
// hold secrets.
//
// # What the human sees
//
// The command, the folder, the paths and the reason may all be written by a model that
// wants an approval, and read in a user interface that renders Markdown or interprets
// terminal escapes. So in a message
//
//   - the sentence comes first and has the wording that clients of Codex know
//     (a patch's reason precedes it), with the command quoted like the Rust
//     crate shlex does, character by character;
//   - a word with a character that a human would not see, or not where it is
//     (controls, line breaks, direction marks, invisible letters, bytes that
//     are not UTF-8), is written $'…' with the escapes \n, \r, \t, \xNN for
//     ASCII controls and stray bytes, \u{N} for other characters, \\ and \';
//     the line "(contains hidden characters)" follows where there are such
//     other than line breaks and tabs;
//   - code spans get a fence that no backtick in them can end;
//   - words of the model are quoted behind "Reason given by the model:";
//   - a command of more than 1,800 characters shows its beginning and its end,
//     its size, and offers no approval for the session.
//
// A command that is shown whole can be read back from the message. Letters that merely
// look alike are not distinguished, and words in right-to-left scripts stay as they are;
// set ExecQuestion.Program when a program is not the one its name suggests.
//
// # What it does not do
//
// It runs nothing, remembers no approvals and knows no rules of what needs one. It starts
// no goroutines. All functions may be called concurrently; an Asker is safe for
// concurrent use, and none of its questions delays another while there are fewer than
// Options.MaxPending.
//
// # Where to go next
//
// [Options] sets what happens without a decision, [Question] has what a question of
// another kind needs, [ShowCommand] and [ShowText] serve programs that show commands
// themselves. docs/approvals.md of the module has the messages as they are on the wire.
// The specification is
// https://modelcontextprotocol.io/specification/2025-06-18/client/elicitation.
package elicit
