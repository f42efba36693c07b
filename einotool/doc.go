// Package einotool is Codex as a tool of eino, with approvals as a callback:
//
//	agent ── InvokableRun ──▶ Tool ──▶ codexserver.Server ──▶ engine
//	            Approve ◀───────┴──── questions
//
// The agent's model hands over a task, and continues a conversation by its threadId:
//
//	codex := &einotool.Tool{Server: server, Approve: ask}
//	node, err := compose.NewToolNode(ctx, &compose.ToolsNodeConfig{Tools: []tool.BaseTool{codex}})
//
// It uses no MCP and no child process.
//
// # Errors
//
// A failed turn and wrong arguments are results with the status failed, for the model to
// read. The end of the context is an error. Without Approve, everything that the server's
// rules leave open is denied.
//
// # Where to go next
//
// Package codexserver makes the server; the tool calls its method Run. The module gosdkmcp
// connects a client of the official SDK.
package einotool
