// Package einotool is Codex as a tool of eino, with approvals as a callback:
//
//	agent ── InvokableRun ──▶ Tool ──▶ codexserver.Server ──▶ engine
//	            Approve ◀───────┴──── questions
//
// The model of the agent hands over a task, and continues a conversation by its threadId:
//
//	codex := &einotool.Tool{Server: server, Approve: ask}
//	node, err := compose.NewToolNode(ctx, &compose.ToolsNodeConfig{Tools: []tool.BaseTool{codex}})
//
// There is no MCP between the two, and no child process.
//
// # What can go wrong
//
// A turn that fails, and arguments that are wrong, are a result for the model, with the
// status failed. The end of the context is an error. Without Approve whatever the
// server's rules leave open is denied.
//
// # Where to go next
//
// Package codexserver makes the server; its method Run is behind the tool. The module
// gosdkmcp connects a client of the official SDK.
package einotool
