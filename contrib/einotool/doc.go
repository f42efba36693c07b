// Package einotool is Codex as a tool of eino, with a client of the Codex MCP server:
//
//	agent ── InvokableRun ──▶ Tool ──▶ client.Client ──▶ a server, here or elsewhere
//	      client.Options.Ask ◀─────────── questions
//
// The agent's model hands over a task, and continues a conversation by its threadId:
//
//	c, err := client.Start(ctx, &client.Options{Command: exec.Command("codex-mcp"), Ask: ask})
//	codex := &einotool.Tool{Client: c}
//	node, err := compose.NewToolNode(ctx, &compose.ToolsNodeConfig{Tools: []tool.BaseTool{codex}})
//
// # Errors
//
// A failed turn, wrong arguments and a lost answer are results with the status failed, for the
// model to read. The end of the context and a closed client are errors. Without Ask, everything
// that the server's rules leave open is denied.
//
// # Where to go next
//
// The program contrib/examples/eino is an agent that asks in the terminal. Package client starts the
// server as a child, in the same process, or connects to a URL. Package gosdkmcp connects a
// client of the official SDK.
package einotool
