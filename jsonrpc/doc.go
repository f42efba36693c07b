// Package jsonrpc is a JSON-RPC 2.0 peer for any protocol, such as MCP or LSP, over any
// transport. Each end of a connection may call the other.
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
// A client needs the same: a [Transport] ([Stdio], [Lines], [Header], [Command], [Pipe], or your
// own), a [Handler] for incoming requests or nil, and [Peer.Run] on a goroutine.
//
// # The picture
//
//	             ┌─ answer ───────▶ the call that waits for it
//	Read ▶ reader ─ request ──────▶ Handler, on a goroutine each ─────┐
//	             └─ notification ─▶ Handler, one after another ───────┤
//	                                                                  │ answers,
//	Write ◀ writer ◀── egress queue ◀── Call, Start, Notify, Reply ◀──┘ calls back
//
// The reader waits only for the transport: not for a handler, for the writer or for room in a
// queue. So a side may write a thousand requests before it reads an answer, a handler may call
// back, and two sides may flood each other.
//
// # Order
//
// The peer handles notifications one by one, as they come. A request starts when those before
// it have been handled; requests run concurrently and delay nothing. Answers, cancel
// notifications and what [Options].Inline chooses do not wait.
//
// A handler of a notification that calls the other side holds up what waits behind it, and two
// such sides can wait for each other. So call on another goroutine.
//
// Messages that one goroutine sends leave in that order. A notification from a handler is
// on the wire before the handler's answer.
//
// # Messages
//
// The peer scans a message once: grammar, UTF-8, nesting, and the envelope's members by exact
// name. None ends the connection. These are answered with a code:
//
//   - [CodeParseError], with the id null: text that is not JSON;
//   - [CodeInvalidRequest], with the id if it is known: JSON that is not a message, a duplicate
//     member of the envelope, an id that is null, fractional, in use or of another kind, and
//     what is too long or too deep, which the peer skips;
//   - [CodeMethodNotFound]: a request without a handler;
//   - [CodeInvalidParams], with the JSON path of the fault: params that do not fit;
//   - [CodeInternalError]: a panic of a handler, or of the encoding of its result.
//
// Broken notifications and responses are not answered, see [Hooks].Problem. An answer completes
// the call with the same id: "1" is not 1.
//
// # Cancellation, pressure, the end
//
// When the context of a call ends, the call returns at once, and a [CancelProfile] says how
// the other side learns of it. [Options] bound what the other side does not read, and what it
// sends; beyond a limit the peer refuses one message, not the connection. [Peer.Run] lists the
// reasons to end. The peer waits for its goroutines, but for a handler that outlives its context
// by a second.
//
// # What it does not do
//
// It sends no batches, does not listen, dial, reconnect or retry, knows no protocol's methods,
// and does not spread one connection over several streams.
package jsonrpc
