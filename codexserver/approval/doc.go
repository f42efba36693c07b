// Package approval has what an embedder writes to decide about the actions of an engine: rules
// that answer before a person is asked, and a desk where a person answers.
//
//	                    ┌─ Rules ── the user's configuration, or a function of yours
//	a Subject is asked ─┤
//	                    └─ the MCP client, and your Desk
//	      │
//	      └─ Decision ── the record, the log, the Desk
//
// The rules come first. If they do not decide, the client and the desk are asked at once. The
// first answer counts, and the question is withdrawn from the other. If two answers arrive
// together, the stricter one counts. Without an answer the question is denied, with a reason
// for the model and for the caller.
//
// # What the human sees
//
// A model may have written the command, the folder, the paths and the reason of a [Command] or a [Patch]:
//
//   - The sentence comes first, in the wording that clients of Codex know. Only a patch's
//     reason precedes it. The command is quoted exactly as the Rust crate shlex quotes it.
//   - A word is written $'…' with escapes when it has a character that a human would not
//     see, or would see in the wrong place, see [elicit.ShowCommand]. The line "(contains hidden
//     characters)" follows unless all of them are line breaks, tabs or stray bytes.
//   - A code span gets a fence that no backtick in it can end.
//   - Words of the model are quoted after "Reason given by the model:".
//   - Of a command with more than 1,800 characters, the message shows the beginning, the
//     end and the size, and offers no approval for the session.
//
// A command that is shown whole can be parsed back from the message. Letters that look
// alike are not distinguished, and words in right-to-left scripts stay as they are. Set
// the request's Program when a program is not the one that its name suggests.
//
// # Kinds of questions
//
// What a question is about is a [Subject], a type for each kind: a [Command], a [Patch], a [Network], an [Access], an
// [Overrule] or an [Other]. Its methods are all that the server knows of the kind: what a person is asked, what the
// record and a result say, whether a rule may decide, and which rule an approval may leave.
//
// A [Foreign] is the question of another party, such as an MCP server. It says on each line who asks, and its answer
// approves nothing.
package approval
