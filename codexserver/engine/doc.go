// Package engine is the seam between the Codex MCP server and what runs the
// turns. An [Engine] starts conversations, a [Conversation] runs turns, and a
// [Host] is what an engine may ask of its server:
//
//	server ──▶ Engine.Start ──▶ Conversation.Turn(ctx, input)
//	   ▲                              │
//	   └── Host: Emit, ApproveExec, ApprovePatch ◀┘
//
// The style is direct: Turn blocks until the turn has ended, an approval blocks
// until there is a decision, and the context is the interrupt. There are no
// queues between the two sides.
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
// # What a server promises
//
//   - Turns of one conversation never overlap; conversations run side by side.
//   - Emit returns without waiting for the client, and events reach it in the
//     order of the calls.
//   - ApproveExec and ApprovePatch always return, and return
//     [elicit.Abort] once their context has ended. They emit the request's event
//     themselves.
//
// A function is enough for a small engine: see [TurnFunc].
package engine
