// Package appserver is the bridge: an engine that drives the Codex installed on this
// machine through `codex app-server`.
//
//	server ── Start, Turn ──▶ Engine ── thread/start, turn/start ──▶ codex app-server
//	   ▲                        │ ▲                                       │
//	   └── Emit, Ask ◀──────────┘ └── item/…, turn/completed, requests ◀──┘
//
// An engine runs one app-server for all its conversations. The first call that needs it
// starts it. After it has ended, the next call starts a new one. Close ends it and all
// that it started:
//
//	appserver.Main() // the first line of your main
//	e, err := appserver.New(nil)
//	if err != nil {
//		return err
//	}
//	defer e.Close()
//	return codexserver.New(e, nil).Serve(ctx, jsonrpc.Stdio())
//
// New starts nothing. [Engine.Check] reports whether the engine can be used:
//
//	if report := e.Check(ctx); !report.Usable() {
//		fmt.Println(report.Problem) // what is wrong, and what to do
//	}
//
// # Translation
//
// The app-server has threads, turns and items; clients of the Codex MCP server know
// conversations and events. Settings that today's Codex no longer takes are translated if
// that keeps their meaning. Others are refused, with what to write instead:
//
//	on-failure             sent as on-request, which Codex has in its place
//	untrusted              sent with each thread, where Codex still takes it
//	profile                its keys are read here and sent as overrides
//	wire_api = "chat"      refused
//
// Package apptypes has the types of the protocol.
//
// # Approvals
//
// When the app-server asks to run a command, to apply a patch or to call the tool of an MCP server, and when Codex's
// reviewer has denied something, the engine calls the host's Ask. A question that approves nothing goes to Elicit.
// Everything but a clear approval declines: a request of a thread without a host, a patch whose changes are unknown, a
// host that cannot ask, a late answer, two questions that are open with one id. An answer that aborts ends the whole
// turn, even if a sub-agent asked. The model gets the reason of a refusal as input to the turn, for which an answer to
// the app-server has no room.
//
// # Messages and sub-agents
//
// Messages to a turn that is interrupted before the model has read them are sent again with the next turn. Commands,
// patches and questions of sub-agents belong to the conversation of the first thread; their messages do not.
//
// # When things go wrong
//
//   - If there is no codex program, if it is older than 0.154 or if no user is signed in,
//     the first call fails at once and says what to do. [Engine.Check] reports the same.
//   - If the app-server dies, its turns fail. The next call continues the conversation in
//     a new app-server.
//   - If the app-server hangs, it is killed: after half a minute without an answer, or ten
//     seconds after an interrupt.
//   - The errors of a dead app-server quote the last lines of its standard error, without
//     what looks like a key.
//
// Interrupting a turn also ends its commands, which Codex by itself would keep for a later
// turn. On Linux the app-server and all that it started end together, and also when the
// program ends in any way; for that, the program begins with [Main]. On other systems the
// app-server ends when its input does, and Close ends its process group.
//
// # Limits
//
// A turn has no time limit but its context. Codex does not stream
// the first output of a command, and reports both of its output streams as one; so do the
// events.
//
// # Where to go next
//
// The page "The bridge to the installed Codex" of the module's documentation lists the
// tested versions and the differences from Codex's own server. Package engine says what an
// engine promises to a server. Package native is the engine that needs no Codex.
package appserver
