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
// One goroutine reads. Another writes while messages are queued. The reader waits only for
// the transport: not for a handler, for the writer or for room in a queue. So a side may
// write a thousand requests before it reads an answer, a handler may call back, and two
// sides may flood each other. [Peer] says which goroutine does what.
//
// # Order
//
// The peer handles notifications one by one, in the order of their arrival. A request
// starts when the notifications before it have been handled. Requests run concurrently, up
// to [Options].MaxConcurrent, and delay nothing. Three kinds of messages skip the queue:
//
//   - answers;
//   - cancel notifications;
//   - what [Options].Inline chooses, which runs on the reader.
//
// A handler of a notification that calls the other side holds up what waits behind it. Two
// sides with such handlers can wait for each other, so call on another goroutine.
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
// The same rules hold for a message that is too long or too deep: the peer skips it, but
// reads its id and kind, so that no caller waits forever. An answer completes the call with
// the same id: "1" is not 1. [Hooks].Problem reports answers that complete nothing.
//
// The other side receives the text of an error that a handler returns, so keep secrets out
// of it; see [Error].
//
// # Cancellation, pressure, the end
//
// When the context of a call ends, the call returns at once, and a [CancelProfile] says how
// the other side learns of it. [Options] bound what the other side does not read,
// and what it sends; beyond a limit the peer refuses one message, not the connection.
// [Peer.Run] lists the reasons to end. The peer waits for every goroutine that it started,
// except for a handler that ignores the end of its context for more than a second.
//
// # What it does not do
//
// It sends no batches, and accepts them only if [Options].Batches says so. It does not listen,
// dial, reconnect or retry. It knows no protocol's methods, validates no schemas, and does
// not spread one connection over several streams, as Streamable HTTP does.
//
// # Where to go next
//
// The examples show calls in both directions, cancellation, and a transport of your own.
// The package's README compares the costs with other peers. Package mcptypes has the messages of MCP,
// and package elicit asks questions with them.
package jsonrpc
