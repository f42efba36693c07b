// Package client is a client of the Codex MCP server. It starts the server, or connects to it,
// hands over tasks, and answers the server's questions:
//
//	c, err := client.Start(ctx, &client.Options{Command: exec.Command("codex-mcp"), Ask: ask})
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	r, err := c.Run(ctx, client.Task{Prompt: "Run the tests and fix what fails."})
//	fmt.Println(r.Answer, r.Changes)
//	r, err = c.Run(ctx, client.Task{Thread: r.ThreadID, Prompt: "Now commit it."})
//
// # The server
//
// It is a child process ([Options].Command), in the same program ([Options].Server), behind a
// URL ([Options].URL), or at the other end of any transport ([Options].Dial). The client uses
// MCP 2026-07-28 if the server has it, and otherwise a handshake; the methods are the same.
//
// # Tasks
//
//	Run ─▶ Started(task id) ─▶ Ask … ─▶ Result
//
// With 2026-07-28 a turn that takes longer than a moment becomes a task of MCP, which has an id
// ([Watch].Started). Keep the id, and [Client.Resume] returns the result, even if this program or
// the server was restarted in between. A task outlives [Client.Close]; the end of the context
// of Run interrupts it.
//
// A task has no events. With [Watch].Event and without [Watch].Started the call stays open
// instead. [Client.Call] calls the tools for several turns at a time.
//
// # Lost connections
//
// If the connection ends, the next call opens another one: it starts the child again, or
// connects again. A turn that is a task continues to be waited for. The client sends no request
// again that may have begun work, so nothing runs twice: without a task's id it returns a
// [*LostError], with the conversation if that is known.
//
// # Results and errors
//
// An error means that there is no result. A turn that failed or was interrupted is a [Result]
// with that [Status]; [Result.Err] makes an error of it. Errors that callers decide on are
// [*LostError], [*ToolError], [ErrClosed], the cause of the context, and the [*jsonrpc.Error]
// of a refused request.
//
// # Questions
//
// [Options].Ask decides what the server's rules leave open. Without it the server knows that no
// one can be asked; by default it denies. A panic, an error or a decision that is not valid
// denies too.
package client
