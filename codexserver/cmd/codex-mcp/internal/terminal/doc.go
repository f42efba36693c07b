// Package terminal is an MCP client for one user at a terminal. It runs a task on the server
// of package codexserver, shows the work in plain lines, and asks the user the server's
// questions.
//
//	jsonrpc.Transport ── peer ─┬─ codex/event ────────▶ inbox ─▶ view ──▶ screen
//	                           ├─ elicitation/create ─▶ inbox ─▶ prompt ◀─ keys
//	                           └─ result of the call ─▶ inbox
//
// It uses only what every client can use: initialize, tools/call, codex/event,
// elicitation/create, notifications/cancelled.
//
// The goroutine that calls [Run] owns the screen and the keys. Messages from the peer go
// into an inbox, in the order of their arrival. They stay there while a question is open,
// so that nothing scrolls the question away.
//
// # What is shown
//
// Everything is a line, and no line is changed after it was shown. The words of a message and the
// lines of a command's output are shown as they come; a thought is shown when it is complete. Of a
// long output the first lines are shown at once, then one a second, and the last ones at the end.
// In a silence a line says for how long the turn has been running, each time after twice as long.
//
// Everything that a model or a command wrote goes through elicit.ShowText or
// elicit.ShowCommand. So it cannot move the cursor, change colours or change the direction
// of the text. Since it has no mark of a question, no row of it looks like the beginning of one,
// wherever its lines are broken. The colours of a command's output are dropped. Prose and
// questions are broken between words; commands, their output and patches are left to the
// terminal, so that a copy of them is exact.
//
// The client uses only the eight basic colours, bold and dim, which every terminal adapts
// to its background. Without a terminal on standard output there are no colours and no
// cursor movements; the progress goes to standard error, and only the answer goes to
// standard output.
//
// # What counts as an answer
//
// A single key, pressed after the keys are shown. They are shown when nothing has been
// typed for a moment, so a user who is typing something else when a question appears does
// not answer it. After pasted text or an unknown key the client explains the keys again;
// the Enter key alone decides nothing. The end of the input stops the turn. A withdrawn
// question takes no answer, and a key for it does not answer the next question.
package terminal
