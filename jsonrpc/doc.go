// Package jsonrpc is a JSON-RPC 2.0 peer for any protocol over any transport: MCP, LSP,
// and whatever else speaks in requests, notifications and responses. Both ends of a
// connection are equal: each may call and be called.
//
//	m := new(jsonrpc.Mux)
//	jsonrpc.Handle(m, "add", func(ctx context.Context, p [2]int) (int, error) {
//		return p[0] + p[1], nil
//	})
//	p := jsonrpc.NewPeer(jsonrpc.Stdio(), m, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
//	err := p.Run(ctx)
//
// and, from any goroutine while Run runs,
//
//	var sum int
//	err := p.Call(ctx, "add", []int{1, 2}, &sum)
//
// A client needs the same three things: a [Transport] ([Stdio], [Lines], [Header],
// [Command], [Pipe], or your own), a [Handler] for incoming requests, nil for none, and
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
// One goroutine reads, one writes while messages are queued, handlers run on others. The
// reader waits for nothing but the transport: not for a handler, not for the writer, not
// for room in a queue. So none of these blocks: a side that writes a thousand requests
// before it reads an answer, a handler that calls back, two sides that flood each other.
// When the line is idle there is no hand-over to the writer: a handler's goroutine, which
// has nothing else to do, writes its answer, and a caller its request if that will not
// make it wait.
//
// A transport may also push its messages, see [Transport]. There is no reader then, and
// with [Peer.Begin] instead of Run an idle peer has no goroutine at all: an HTTP server
// can have many thousand sessions.
//
// Over descriptors of the operating system, where waking a goroutine wakes a thread, the
// reader runs the handler of a request that arrives alone itself if the last sixteen
// requests of its method took less than 100 µs each. If such a handler calls the other
// side, another goroutine reads on at once; if it blocks otherwise, after 10 to 20 ms.
//
// # Order
//
// Inbound, notifications are handled one by one in the order of their arrival. A request
// is started once the notifications before it have been handled; requests run
// concurrently, up to [Options].MaxConcurrent, and delay nothing. Three things do not
// queue: answers, so that the handler of a notification may call back; cancel
// notifications; and the methods listed in [Options].Inline, which run on the reader. And
// while the handler of a notification waits for an answer to a call made with its
// context, on this peer or another ([Peer.Call], [Call.Result], [Call.Done]), requests
// overtake the notifications still waiting: two sides whose handlers do so, and a proxy
// whose chain of calls comes back, would otherwise wait forever.
//
// Outbound, what one goroutine sends leaves in that order. A notification sent by a
// handler is on the wire before the handler's answer.
//
// # Messages
//
// A message is scanned once, in place: JSON grammar, UTF-8, nesting, and the envelope by
// its exact member names. Whatever comes, the connection lives:
//
//   - what is not JSON is answered with [CodeParseError] and the id null;
//   - JSON that is not a message, a duplicate member of the envelope, an id
//     that is null, fractional or of another kind, and a request whose id is
//     in use, with [CodeInvalidRequest] and the id if it can be known;
//   - a request without a handler with [CodeMethodNotFound];
//   - params that do not fit with [CodeInvalidParams] and the JSON path of the
//     fault, see [Request.Bind];
//   - a handler that panics, or whose result or error panics while it is
//     encoded, with [CodeInternalError];
//   - notifications and responses, however broken, with nothing.
//
// A message that is too long or too deep ([Options].MaxMessage, MaxDepth) is treated by
// the same rules: what was skipped is read for its id and kind, so that neither the
// caller on the other side nor the one on this side waits forever.
//
// An answer completes a call if its id is the same: "1" is not 1. An answer to no call, a
// second answer, and one with both a result and an error complete nothing.
// [Hooks].Problem reports what was ignored.
//
// An error returned by a handler is sent to the other side with its text; see [Error] for
// how, and keep secrets out of it.
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
// What is sent faster than the other side reads is queued and counted in bytes, see
// [EgressOptions]: a high water mark is reported, at the hard limit notifications and
// calls fail with [ErrFull] or wait, answers are never refused. Inbound, [Options] bounds
// the length, nesting, number and waiting bytes of messages; beyond a limit one message
// is refused, not the connection. [Peer.Stats] returns the current figures.
//
// # The end
//
// [Peer.Run] returns, and [Peer.Begin] reports, when the other side has ended its input,
// after it has answered what was accepted before (calls that wait for an answer fail at
// once, since none can come); when its context ends; when the transport fails; after
// [Peer.Shutdown] or [Peer.Close]. It waits for every goroutine it has started, except
// for a handler that ignores the end of its context for longer than a second.
//
// # Buffers
//
// A message returned by a transport belongs to the peer, and its Params to the handler,
// which may keep them; lines that were read together share memory, so that keeping a few
// bytes may keep 64 KiB. An idle peer holds no more than that of what it has read. Slices
// passed to hooks, and to a transport's Write, are only lent. Values to send are encoded
// before the call returns and may be changed after.
//
// # What it does not do
//
// It does not listen, dial or reconnect, know any protocol's methods, validate against
// schemas, retry, or spread one connection over several streams: Streamable HTTP, where
// answers take the way of their request, needs more than a [Transport]. WebSocket is in
// the package wsrpc.
//
// # Where to go next
//
// The examples have both sides calling, a handler that calls back, cancellation and a
// transport of one's own. [Options] lists every bound with its default, [Hooks] what can
// be watched, README.md what it costs compared with other peers. Package mcptypes has the
// messages of MCP, package elicit asks with them.
package jsonrpc
