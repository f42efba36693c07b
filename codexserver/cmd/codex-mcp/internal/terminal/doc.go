// Package terminal is an MCP client for one person at a terminal. It gives the server a task, prints the
// work as plain lines, and asks the server's questions, each by a line.
//
// No line changes after it was printed. The only control sequences are those with which a terminal that can rewrite its
// last line shows there what happens now; that line is gone before anything else is printed, and while a question is
// open. Every text of a model, a command, a file or a server goes through [Prose], [Row], elicit.ShowText or
// elicit.ShowCommand, so it cannot move the cursor, change colours or change the direction of the text. The mark of a
// question stands only before a question, and is an escape in every other text: no row can look like the beginning of a
// question, wherever the terminal breaks its lines.
//
// If standard output is no terminal it gets the answer alone, and the work goes to standard error.
//
// One line answers a question, typed after it offers its answers. It offers them when no line has come for a
// moment, and discards what was typed until then. Several lines at once are pasted and answer nothing. The
// end of the input stops the turn. A question that was withdrawn takes no answer.
package terminal
