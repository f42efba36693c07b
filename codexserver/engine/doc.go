// Package engine is the seam between the Codex MCP server and what runs the turns. An
// [Engine] starts conversations, a [Conversation] runs turns, and a [Host] is what an
// engine may ask of its server:
//
//	server ──▶ Engine.Start ──▶ Conversation.Turn(ctx, input)
//	   ▲                              │
//	   └── Host: Emit, Ask, Elicit ◀──┘
//
// The calls block: Turn until the turn has ended, an approval until there is a decision.
// The end of the context is the interrupt. There are no queues between the two sides.
//
// A function is enough for a small engine, see [TurnFunc]:
//
//	echo := engine.TurnFunc(func(ctx context.Context, host engine.Host, input []protocol.InputItem) error {
//		host.Emit(protocol.AgentMessage{Message: "You said: " + protocol.TextOf(input)})
//		return nil
//	})
//	err := codexserver.New(echo, nil).Serve(ctx, jsonrpc.Stdio())
//
// [ConfigOf] returns the conversation's configuration, such as the working folder and the
// sandbox mode. An engine asks before it acts, and reports to the model why an action was refused:
//
//	out := host.Ask(ctx, approval.Command{CallID: "1", Command: argv, Cwd: dir})
//	if !out.Decision.Approves() {
//		return errors.New(out.ForModel())
//	}
//
// # What an engine promises
//
//   - Start emits [protocol.SessionConfigured] once, before it returns.
//   - A turn emits [protocol.TaskStarted] first. It ends with
//     [protocol.TaskComplete] and nil; with [protocol.Error], TaskComplete
//     without a message and a [*TurnError]; or with [protocol.TurnAborted] and
//     an [*AbortError]. Nothing is emitted after that.
//   - When the turn's context ends, Turn returns within a second. Its processes and
//     requests have ended then. The conversation stays usable, and its history valid.
//   - Nothing runs unless the outcome of its approval is an approval. After
//     [elicit.Abort] the engine makes no further model request.
//
// TurnFunc keeps the first two by itself. Package enginetest tests all of them.
//
// # What a server promises
//
//   - Turns of one conversation never overlap. Conversations run at the same time.
//   - Events reach the client in the order of the calls of Emit. Emit waits only as
//     [Host] says.
//   - Ask always returns, and returns [elicit.Abort] once its context has ended, if the
//     turn waits for the answer. It emits the question's event itself.
//
// # What more an engine can do
//
// The other interfaces are optional. The server finds them by type assertion, and a client
// has the methods and tools of those that the engine has:
//
//	Resumer       codex-reply to a conversation of an earlier process
//	Library       codex-list
//	Accounts      getAuthStatus, logoutChatGpt
//	Searcher      fuzzyFileSearch
//	ModelLister   codex-models
//
// A conversation that is a [Steerer] takes messages while a turn runs, a [Checker] runs its checks and set-ups, and a [Former]
// gives its answer a form. What a server should know besides, such as the engine's name and whether it confines
// commands, are the [Traits] of a [Describer].
//
// To run an engine without a server, write a [Host]; [DenyAll] is the half of it that
// answers questions.
//
// # What can go wrong
//
// The error decides what a client learns. A [*ConfigError] from Start is a fault in the configuration. A [*TurnError]
// is the text of the failed call. An [*AbortError] says who ended the turn; without a reason it is an interrupt. A
// [*RefusedError] and [ErrNotFound] mean that the request was wrong, [ErrNoTurn] that no turn was running. Any other
// error is a fault of the engine.
//
// # Where to go next
//
// Packages native and appserver are two complete engines. Package protocol has the events
// and requests, package elicit the outcomes.
package engine
