// Package codexserver is the Codex MCP server: an MCP client hands it a coding task with
// the tool codex, continues with codex-reply, follows the work in codex/event
// notifications, and decides by elicitation what may run.
//
//	client ── tools/call codex ──▶ Server ── Start, Turn ──▶ engine.Engine
//	   ▲                             │ ▲                          │
//	   ├── codex/event ◀─────────────┤ └── Emit, ApproveExec … ◀──┘
//	   └── elicitation/create ◀──────┘
//
// What runs the turns is behind [engine.Engine]; the server does not depend on its
// insides. A whole server, on the native engine and standard input and output:
//
//	native.Main() // the first line of your main
//	e, err := native.New(nil) // $CODEX_HOME/config.toml
//	if err != nil {
//		return err
//	}
//	defer e.Close()
//	return codexserver.New(e, nil).Serve(ctx, jsonrpc.Stdio())
//
// With appserver.New(nil) the installed Codex runs the turns, with an engine.TurnFunc a
// function of yours.
//
// # What a client sees
//
// Both eras of MCP on one connection: requests after a handshake, up to 2025-11-25, and
// requests that say everything by themselves, from 2026-07-28 on.
//
// The tools codex, codex-reply, codex-review, codex-wait, codex-show, codex-worktree,
// codex-list, codex-interrupt and codex-models; events as codex/event with the id of the
// call they belong to; progress for calls that bring a token; and the JSON-RPC methods of September 2025 (newConversation,
// sendUserMessage and their like), each group of them when the engine has the interface
// behind it. A call is answered when its turn has ended, with the thread's id in
// structuredContent.
//
// # Who decides
//
// When an engine asks for an approval, [approval.Rules] come first: lists of commands,
// then a function of yours. What they leave open is put to the client and the
// [approval.Desk], if there is one, at once. The first answer counts, of two that arrive
// together the stricter one:
//
//	ApproveExec ─▶ Rules ─▶ client: elicitation/create ─┐
//	                     └▶ Desk.Ask ───────────────────┴▶ approval.Decision
//
// [Options].Approvals sets how to ask and what happens to a question without an answer;
// by default it is a denial after ten minutes. [Options].Record gets every question with
// its decision and who made it.
//
// # Promises
//
//   - Every request is answered, also before initialize and also when its method
//     is unknown; the one exception is a request that the client cancelled,
//     which MCP leaves without an answer.
//   - An approval that cannot be had is a denial, never a hang: package elicit
//     has the table. The reason is in the tool's result.
//   - Turns of one conversation run one after another, conversations side by side.
//   - When the client's input ends, or the context of Serve does, every turn is
//     interrupted, calls in flight are answered with what there is, and Serve
//     returns.
//
// # What can go wrong
//
// A client that cannot show elicitations gets the reason in the second block of a tool's
// result; a desk or rules help. A turn that fails or is aborted is an isError result with
// the reason, and its conversation stays usable. An engine that cannot start a
// conversation says why in the result of the call. Serve returns an error only when the
// connection itself broke; the program that makes an engine closes it.
//
// A caller of the tool may choose its policy, its sandbox mode and its configuration:
// SECURITY.md says what that means.
//
// # Concurrency
//
// A [Server] has no state outside its value, and any number of Serve may run at a time,
// one session each. Several servers can run in one program.
//
// # Where to go next
//
// Package approval decides, engine is the seam, native and appserver are the engines,
// protocol has the events, elicit the questions, jsonrpc the transports. docs/wire.md of
// the module lists every tool, method and event, docs/approvals.md every answer,
// docs/differences.md where the server of September 2025 and this one part, and
// docs/embedding.md has whole programs.
package codexserver
