// Package appserver is the bridge: the engine that drives the real Codex, as it is
// installed and signed in on this machine, through `codex app-server`.
//
//	server ── Start, Turn ──▶ Engine ── thread/start, turn/start ──▶ codex app-server
//	   ▲                        │ ▲                                       │
//	   └── Emit, ApproveExec ◀──┘ └── item/…, turn/completed, requests ◀──┘
//
// An engine runs one app-server for all its conversations. It is started by the first
// call that needs it, started again by the next call when it has ended, and ended by
// Close with everything that it has started:
//
//	appserver.Main() // the first line of your main
//	e, err := appserver.New(nil)
//	if err != nil {
//		return err
//	}
//	defer e.Close()
//	return codexserver.New(e, nil).Serve(ctx, jsonrpc.Stdio())
//
// New starts nothing. To know beforehand whether it will work, ask [Engine.Check]:
//
//	if report := e.Check(ctx); !report.Usable() {
//		fmt.Println(report.Problem) // what is wrong, and what to do
//	}
//
// [Options].Dial takes an app-server that runs already, over any transport.
//
// # What it is there for
//
// The app-server speaks of threads, turns and items; clients of the Codex MCP server know
// conversations and events. The files translate_event.go, translate_approval.go and
// translate_config.go hold the whole of that translation and no other behaviour. Words
// that today's Codex no longer takes are translated where that keeps their meaning, and
// else refused with what to write instead:
//
//	on-failure             on-request, as Codex itself reads it since 0.143
//	untrusted              given with each thread, where Codex still takes it
//	profile                its keys are read here and given as overrides
//	include_plan_tool, …   without effect in today's Codex, left out
//	wire_api = "chat"      refused
//
// # Approvals
//
// A request of the app-server to run a command or to apply a patch goes to the host's
// ApproveExec and ApprovePatch; questions of another kind, such as the call of an MCP
// server's tool, to the host. Whatever is not an approval declines: a request of a thread
// without a host, a patch whose changes are not known, a host that cannot ask, an answer
// that comes too late. Of one turn one question is open at a time. After an answer that
// aborts, the whole turn ends, also when a sub-agent has asked.
//
// The answer to the app-server has no room for a reason. What a person wrote to the
// model, or why no person could be asked, is therefore sent as input to the turn, before
// the refusal.
//
// # Messages to a running turn
//
// The app-server takes them with turn/steer, from 0.99 on, and forgets those that the
// model has not read when the turn ends before its time. The engine sends them with the
// next turn. It knows what was read by the user's items that the app-server reports, in
// their order.
//
// # Sub-agents
//
// A thread may start others by itself. Their commands, patches and questions belong to
// the conversation that began it all; their messages do not.
//
// # When things go wrong
//
// There is no codex program, it is older than 0.80, or no user is signed in: the first
// call says so at once, and what to do; [Engine.Check] reports the same before. The
// app-server dies: its turns fail, and the next call continues the conversation in a new
// one, but not more often than four times a minute. It hangs: after half a minute without
// an answer, or ten seconds after an interrupt, it is killed. What it writes to its
// standard error is kept, without what looks like a key, and reported with its end.
//
// An interrupted turn ends with the commands that it runs, which Codex by itself would
// keep for a later turn. On Linux, in a program that begins with [Main], the app-server
// and all that it started end together, and with the program, in whatever way that ends.
// Without Main the kernel ends the app-server with the program, and Close finds the
// commands that run in sessions of their own by an environment variable that they have
// inherited. On other systems the app-server ends when its input does, and Close ends its
// process group.
//
// # What is not done
//
// A turn has no time limit but its context. The schema of the app-server is not covered
// whole: what no client of the MCP server can ask for is left out. The real Codex sends
// no output of the first moments of a command while it runs, and only the sum of both
// streams at its end; so do the events.
//
// # Where to go next
//
// docs/bridge.md of the module has the versions that were tried and what is different
// from Codex's own server. Package engine has what is promised to a server; package
// native is the engine that needs no Codex.
package appserver
