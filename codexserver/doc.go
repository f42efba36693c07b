// Package codexserver is the Codex MCP server. An MCP client starts a coding task with the
// tool codex, continues it with codex-reply, follows the work in codex/event
// notifications, and answers elicitations about what may run.
//
//	client ── tools/call codex ──▶ Server ── Start, Turn ──▶ engine.Engine
//	   ▲                             │ ▲                          │
//	   ├── codex/event ◀─────────────┤ └── Emit, Ask ◀────────────┘
//	   └── elicitation/create ◀──────┘
//
// An [engine.Engine] runs the turns; the server knows only that interface. A whole server
// with the native engine, on standard input and output:
//
//	native.Main() // the first line of your main
//	e, err := native.New(nil) // $CODEX_HOME/config.toml
//	if err != nil {
//		return err
//	}
//	defer e.Close()
//	return codexserver.New(e, nil).Serve(ctx, jsonrpc.Stdio())
//
// With appserver.New(nil) the installed Codex runs the turns. With an engine.TurnFunc a
// function of yours does.
//
// # What a client sees
//
// One connection serves both eras of MCP: requests after a handshake, up to 2025-11-25,
// and requests that are complete by themselves, from 2026-07-28 on. A client has
//
//   - the tools codex, codex-reply, codex-review, codex-wait, codex-show,
//     codex-list, codex-interrupt and codex-models;
//   - events as codex/event, with the id of the call that they belong to;
//   - progress for calls with a progress token;
//   - the JSON-RPC methods of September 2025, such as newConversation and
//     sendUserMessage. A group of methods exists if the engine has its interface.
//
// A call is answered when its turn has ended. The thread's id is in structuredContent.
//
// # Who decides
//
// When an engine asks for an approval, [approval.Rules] come first: lists of commands, then
// a function of yours. If they do not decide, the client and the [approval.Desk], if there
// is one, are asked at once. The first answer counts. If two arrive together, the stricter
// one counts:
//
//	Ask ─▶ Rules ─▶ client: elicitation/create ─┐
//	             └▶ Desk.Ask ───────────────────┴▶ approval.Decision
//
// [Options].Approvals sets how to ask, and what happens without an answer: by default the
// question is denied after ten minutes. Every question is written to [Options].Record,
// with the decision and who made it.
//
// # Promises
//
//   - Every request is answered, even before initialize and even if its method is
//     unknown. The one exception is a request that the client cancelled: MCP forbids
//     an answer.
//   - If no approval can be obtained, the action is denied; nothing hangs. Package
//     elicit has the table. The reason is in the tool's result.
//   - The turns of a conversation run one after another. Conversations run at the same
//     time.
//   - When the client's input or the context of Serve ends, every turn is interrupted,
//     open calls are answered with what was done, and Serve returns.
//
// # What can go wrong
//
// If the client cannot show elicitations, the second block of the tool's result says so; a
// desk or rules help. A turn that fails or is aborted is an isError result with the reason,
// and its conversation stays usable. If the engine cannot start a conversation, the call's
// result says why. Serve returns an error only if the connection broke. The server does
// not close its engine.
//
// A call may choose its approval policy, its sandbox mode and its configuration: the page
// "Security" of the module's documentation explains what that means.
//
// # Concurrency
//
// A [Server] has no global state, so several can run in one program. Any number of calls
// of Serve may run at a time, each for one session.
//
// # Where to go next
//
// Package approval decides about approvals. Package engine has the interface of engines;
// native and appserver are two of them. Package protocol has the events, elicit the
// questions, jsonrpc the transports. Of the module's documentation, the page "The wire"
// lists every tool, method and event, "The questions on the wire" every answer,
// "Differences to the old servers" what has changed since September 2025, and "Embedding"
// has whole programs.
package codexserver
