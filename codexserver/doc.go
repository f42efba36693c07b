// Package codexserver is the Codex MCP server: an MCP client hands it a coding
// task with the tool codex, goes on with codex-reply, follows the work in
// codex/event notifications, and decides by elicitation what may run.
//
//	client ── tools/call codex ──▶ Server ── Start, Turn ──▶ engine.Engine
//	   ▲                             │ ▲                          │
//	   ├── codex/event ◀─────────────┤ └── Emit, ApproveExec … ◀──┘
//	   └── elicitation/create ◀──────┘
//
// What runs the turns stands behind [engine.Engine]; the server knows nothing
// of its insides. A server in one line:
//
//	err := codexserver.New(e, nil).Serve(ctx, jsonrpc.Stdio())
//
// # Promises
//
//   - Every request is answered, also before initialize and also when its method
//     is unknown; the one exception is a request that the client cancelled,
//     which MCP leaves without an answer.
//   - An approval that cannot be had is a denial, never a hang: package elicit
//     has the table. The reason stands in the tool's result.
//   - Turns of one conversation run one after another, conversations side by side.
//   - When the client's input ends, or the context of Serve does, every turn is
//     interrupted, calls in flight are answered with what there is, and Serve
//     returns.
//
// A server has no state outside its value; several can run in one program.
//
// The wire follows the Codex MCP server of September 2025 and MCP 2025-06-18;
// ARCHITECTURE.md says where the two disagree and what is done then.
package codexserver
