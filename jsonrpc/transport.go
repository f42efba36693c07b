package jsonrpc

import "context"

// Transport moves whole messages. A peer calls Read from one goroutine and Write from one
// goroutine at a time, the two at once, and Close from any. If a transport also has a method
// SetReadLimit(bytes int), the peer calls it with [Options].MaxMessage before the first Read, so
// that the transport can skip a longer message instead of holding it in memory.
type Transport interface {
	// Read returns the next message, one JSON text, which belongs to the peer from then on. io.EOF says that the
	// other side will send no more, though it may still read. An [*Error] concerns one message only: the peer
	// answers it with an absent id and reads on. Any other error ends the connection.
	Read(ctx context.Context) ([]byte, error)

	// Write sends messages in order, with one write for all if the framing allows it, and returns when they are
	// handed to the wire. None contains a line feed. The slices belong to the peer again when Write returns. Any
	// error ends the connection.
	Write(ctx context.Context, messages [][]byte) error

	// Close unblocks Read and Write. The peer calls it once, after the last Write when the end is orderly.
	Close() error
}

// The peer finds the following three by a type assertion, so a type that wraps a Transport hides them.
// Each saves something and none is needed.

// limiter is a transport that can refuse a long message before it is in memory. The peer
// sets the limit before the first Read.
type limiter interface{ SetReadLimit(bytes int) }

// prompter is a transport that can write messages if that does not wait for
// the other side. Like Write it is called by one goroutine at a time.
type prompter interface {
	// prompts reports whether prompt can ever write.
	prompts() bool

	// prompt writes as many of the messages as it can and returns their number.
	prompt(messages [][]byte) (n int, err error)
}

// looker is a transport that knows what has arrived.
type looker interface {
	// more reports whether something of the next message has arrived. Only the goroutine that reads calls it.
	more() bool

	// beforeWait sets what Read calls each time before it waits for input.
	beforeWait(f func())
}
