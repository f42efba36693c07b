// Package terminal is an MCP client for one person at a terminal: it hands a task to the
// server of package codexserver, shows what happens, and answers the server's questions
// with the keys that the person presses.
//
//	jsonrpc.Transport ── peer ─┬─ codex/event ────────▶ inbox ─▶ view ──▶ screen
//	                           ├─ elicitation/create ─▶ inbox ─▶ prompt ◀─ keys
//	                           └─ result of the call ─▶ inbox
//
// It knows about the server what every client knows: initialize, tools/call, codex/event,
// elicitation/create, notifications/cancelled, listConversations.
//
// One goroutine, the one that calls [Run], owns the screen and the keys. What the peer
// receives goes into an inbox in the order of its arrival; while a question is open it
// stays there, so that nothing scrolls the question away.
//
// # What is shown
//
// Everything that a model or a command wrote goes through elicit.ShowText or
// elicit.ShowCommand: nothing of it moves the cursor, changes a colour or turns the
// direction of the text, and no row of it begins as our questions do. A command's own
// colours are dropped.
//
// Only the eight basic colours, bold and dim are used, which every terminal fits to its
// background. Without a terminal on standard output there are no colours and no cursor
// movements, the progress goes to standard error and the answer alone to standard output.
//
// # What counts as an answer
//
// A key that is pressed after the keys are shown, and alone. The keys are shown when
// nothing has been typed for a moment, so that who is typing something else when a
// question appears does not answer it. Pasted text and unknown keys explain the keys
// again, and the Enter key alone decides nothing. The end of the input stops the turn. A
// question that is withdrawn takes no answer, and its key is not for the next one.
package terminal
