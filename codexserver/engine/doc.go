// Package engine is the seam between the Codex MCP server and what runs the turns. An
// [Engine] starts conversations, a [Conversation] runs turns, and a [Host] is what an
// engine may ask of its server:
//
//	server ──▶ Engine.Start ──▶ Conversation.Turn(ctx, input)
//	   ▲                              │
//	   └── Host: Emit, ApproveExec, ApprovePatch ◀┘
//
// The style is direct: Turn blocks until the turn has ended, an approval blocks until
// there is a decision, and the context is the interrupt. There are no queues between the
// two sides.
//
// A function is enough for a small engine, see [TurnFunc]:
//
//	echo := engine.TurnFunc(func(ctx context.Context, host engine.Host, input []protocol.InputItem) error {
//		host.Emit(protocol.AgentMessage{Message: "You said: " + protocol.TextOf(input)})
//		return nil
//	})
//	err := codexserver.New(echo, nil).Serve(ctx, jsonrpc.Stdio())
//
// It asks before it acts, and reports to the model why an action was refused:
//
//	out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "1", Command: argv, Cwd: dir})
//	if out.Decision != elicit.Approved {
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
//   - When the turn's context ends, Turn returns soon: within a second its
//     processes are gone and its requests are cut. The conversation stays
//     usable, its history valid.
//   - An approval that does not say approved runs nothing. After
//     [elicit.Abort] no further model request is made.
//
// TurnFunc keeps the first two by itself. Package enginetest holds an engine against all
// of them.
//
// # What a server promises
//
//   - Turns of one conversation never overlap; conversations run side by side.
//   - Emit returns without waiting for the client, and events reach it in the
//     order of the calls.
//   - ApproveExec, ApprovePatch and Approve always return, and return
//     [elicit.Abort] once their context has ended. They emit the request's event
//     themselves.
//
// # What more an engine can do
//
// The other interfaces are optional, and the server finds them by type assertion; a
// client has the methods of those that are there:
//
//	Resumer       codex-reply to a conversation of an earlier process, resumeConversation
//	Library       listConversations, archiveConversation, codex-list
//	Accounts      getAuthStatus, loginApiKey, loginChatGpt, logoutChatGpt, userInfo
//	Configurator  getUserSavedConfig, setDefaultModel
//	Commander     execOneOffCommand
//	Searcher      fuzzyFileSearch
//	Differ        gitDiffToRemote
//	ModelLister   codex-models
//
// A conversation that is a [Steerer] takes messages while a turn runs. One that is a
// [Reviewer] reviews changes in a turn that makes none.
//
// To run an engine without a server, write a [Host]; [DenyAll] is the half of it that
// answers questions.
//
// # What can go wrong
//
// What a client learns depends on the error: a [*ConfigError] from Start is a fault in
// the configuration, a [*TurnError] is the text of the failed call, an [*AbortError] says
// who ended the turn, a [*RefusedError] and [ErrNotFound] say that the request was wrong,
// [ErrNoTurn] that it came when no turn was running. Any other error is a fault of the
// engine.
//
// # Where to go next
//
// Packages native and appserver are two engines of some size; package protocol has the
// events and requests that pass here, package elicit the outcomes.
package engine
