// Package jsonrpc is a JSON-RPC 2.0 peer for any protocol, such as MCP or LSP, over any
// transport. Both ends of a connection are equal: each may call the other.
//
//	m := new(jsonrpc.Mux)
//	jsonrpc.Handle(m, "add", func(ctx context.Context, p [2]int) (int, error) {
//		return p[0] + p[1], nil
//	})
//	p := jsonrpc.NewPeer(jsonrpc.Stdio(), m, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
//	err := p.Run(ctx)
//
// Any goroutine may call while Run runs:
//
//	var sum int
//	err := p.Call(ctx, "add", []int{1, 2}, &sum)
//
// A client needs the same three things: a [Transport] ([Stdio], [Lines], [Header],
// [Command], [Pipe], or your own), a [Handler] for incoming requests or nil, and
// [Peer.Run] on a goroutine.
//
// # The picture
//
//	             ┌─ answer ───────▶ the call that waits for it
//	Read ▶ reader ─ request ──────▶ Handler, on a goroutine each ─────┐
//	             └─ notification ─▶ Handler, one after another ───────┤
//	                                                                  │ answers,
//	Write ◀ writer ◀── egress queue ◀── Call, Start, Notify, Reply ◀──┘ calls back
//
// One goroutine reads. Another writes while messages are queued. Handlers run on others.
// The reader waits only for the transport. It does not wait for a handler, for the writer
// or for room in a queue. So a side may write a thousand requests before it reads an
// answer, a handler may call back, and two sides may flood each other: none of this blocks.
// When the queue is empty, the goroutine that sends also writes: a handler its answer, and
// a caller its request if that does not make the caller wait.
//
// A transport may also push its messages, see [Transport]. Then there is no reader. With
// [Peer.Begin] instead of Run, such a peer has no goroutine while it is idle, so an HTTP
// server can have many thousand sessions.
//
// On file descriptors of the operating system, waking a goroutine wakes a thread. There
// the reader itself runs the handler of a request that arrives alone, if requests of its
// method mostly take less than 100 µs each, and lately none took more than a millisecond. If
// the handler calls the other side with its context, it reads while it waits (with [Lines],
// if the input can have a deadline). Otherwise another goroutine continues to read: at once
// if the handler calls, and after 10 to 20 ms if it blocks.
//
// # Order
//
// The peer handles notifications one by one, in the order of their arrival. A request
// starts when the notifications before it have been handled. Requests run concurrently, up
// to [Options].MaxConcurrent, and delay nothing. Three kinds of messages skip the queue:
//
//   - answers, so that the handler of a notification may call the other side;
//   - cancel notifications;
//   - the methods in [Options].Inline and what InlineIf chooses, which run on the reader.
//
// A handler of a notification may wait for the answer to a call that it made with its
// context, on this peer or another ([Peer.Call], [Call.Result], [Call.Done]). Meanwhile
// requests overtake the waiting notifications. Otherwise two sides with such handlers would
// wait for each other forever.
//
// Messages that one goroutine sends leave in that order. A notification from a handler is
// on the wire before the handler's answer.
//
// # Messages
//
// The peer scans a message once, in place: JSON grammar, UTF-8, nesting, and the members of
// the envelope by their exact names. No message ends the connection:
//
//   - Text that is not JSON is answered with [CodeParseError] and the id null.
//   - JSON that is not a message, a duplicate member of the envelope, an id that is null,
//     fractional or of another kind, and a request whose id is in use are answered with
//     [CodeInvalidRequest], and with the id if it is known.
//   - A request without a handler is answered with [CodeMethodNotFound].
//   - Params that do not fit are answered with [CodeInvalidParams] and the JSON path of the
//     fault, see [Request.Bind].
//   - If a handler panics, or the encoding of its result or error does, the answer is
//     [CodeInternalError].
//   - Broken notifications and responses are not answered.
//
// The same rules hold for a message that is too long or too deep ([Options].MaxMessage,
// MaxDepth). The peer skips it, but reads its id and kind, so that no caller on either side
// waits forever.
//
// An answer completes the call with the same id: "1" is not 1. An answer to no call, a
// second answer, and one with both a result and an error complete nothing. [Hooks].Problem
// reports them.
//
// The other side receives the text of an error that a handler returns, so keep secrets out
// of it; see [Error].
//
// # Cancellation
//
// When the context of a call ends, the call returns at once. With a [CancelProfile] the
// other side is notified, and the context of its handler ends with the cause
// [ErrCancelled]. Under [MCPCancel] a cancelled request is not answered; under
// [LSPCancel] it is.
//
// # Pressure
//
// Messages that the other side does not read fast enough are queued and counted in bytes,
// see [EgressOptions]. At the hard limit notifications and calls fail with [ErrFull], or
// wait; answers are never refused. For input, [Options] limits the length, nesting, number
// and waiting bytes of messages. Beyond a limit the peer refuses one message, not the
// connection. [Peer.Stats] returns the current figures.
//
// # The end
//
// [Peer.Run] returns, and [Peer.Begin] reports the end, in these cases:
//
//   - The other side ends its input. The peer first answers the requests that it has
//     accepted. Calls that wait for an answer fail at once, because none can come.
//   - The context ends.
//   - The transport fails.
//   - [Peer.Shutdown] or [Peer.Close] is called.
//
// The peer waits for every goroutine that it started, except for a handler that ignores the
// end of its context for more than a second.
//
// # Buffers
//
// A message that a transport returns belongs to the peer. Its Params belong to the handler,
// which may keep them. Lines that were read together share memory, so a few kept bytes may
// keep 64 KiB. An idle peer holds no more than that of its input. Slices that hooks and a
// transport's Write receive are valid only during the call. Values to send are encoded
// before the call returns, and may be changed after it.
//
// # What it does not do
//
// It sends no batches, and accepts them only after [Peer.AcceptBatches]: otherwise an array is
// answered with one [CodeInvalidRequest]. It does not listen, dial, reconnect or retry. It knows no protocol's methods and does not
// validate against schemas. It does not spread one connection over several streams:
// Streamable HTTP, where an answer takes the stream of its request, needs more than a
// [Transport]. WebSocket is in the package wsrpc.
//
// # Where to go next
//
// The examples show two sides that call each other, a handler that calls back,
// cancellation, and a transport of your own. [Options] lists every limit with its default,
// [Hooks] what can be observed. README.md compares the costs with other peers. Package
// mcptypes has the messages of MCP, and package elicit asks questions with them.
package jsonrpc
