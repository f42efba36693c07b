package jsonrpc

import (
	"log/slog"
	"slices"
	"time"
)

// Options configure a [Peer]. A nil *Options and the zero value of each field
// mean the default named there.
type Options struct {
	// Cancellation says how requests are cancelled over the wire: MCPCancel,
	// LSPCancel or a profile of one's own. Default: not at all.
	Cancellation *CancelProfile

	// Inline reports whether a request or notification is handled on the read loop, at once and ahead
	// of notifications still waiting, see [Methods]. Its handler must not block, and must not call the
	// other side. Default: none is.
	Inline func(r *Request) bool

	// Batches reports whether the peer accepts batches now; it is asked when one comes. An array of up
	// to 256 messages is handled as if they had come one by one, but the answers are sent together, as
	// one array, when the last is there. Without answers nothing is sent. Answers that wait for others
	// of their batches count up to twice MaxUnsent; then the connection is closed. A
	// peer sends no batches. Default: it accepts none.
	Batches func() bool

	// LenientVersion accepts messages whose jsonrpc member is absent or
	// another string. Default: they are invalid requests.
	LenientVersion bool

	// OmitVersion leaves the jsonrpc member out of what is sent, for dialects
	// that do so, and implies LenientVersion.
	OmitVersion bool

	// MaxMessage is the longest message accepted, in bytes. A longer one is
	// skipped: a request is answered with CodeInvalidRequest and its id, a
	// response fails its call, a notification is reported to Hooks.Problem.
	// The same goes for one whose arrays and objects nest deeper than 512.
	//
	// It also bounds the requests and notifications that wait to be handled, together. Beyond it a
	// request is answered with CodeOverloaded and a notification is dropped, which Hooks.Problem and
	// [Stats] report. Default: 64 MiB.
	MaxMessage int

	// MaxConcurrent is the number of requests handled at the same time;
	// further ones wait their turn. A request holds its place until it has
	// been answered, also while its handler calls back or has left the answer
	// to a [Responder]. So two sides that call each other back and forth deeper
	// than this wait for each other, as do detached requests that are only
	// answered after a further request. Inline methods take a place when they
	// detach, above the limit if none is free. Default: 1024.
	MaxConcurrent int

	// MaxUnsent is how many bytes may wait for the other side to read. Beyond it notifications and calls
	// fail with [ErrFull], and the goroutine that answers a request waits for room. What the reader itself
	// answers is queued up to twice MaxUnsent: then the other side sends requests without end and reads
	// nothing, and the connection is closed with ErrFull. Default: 256 MiB.
	MaxUnsent int

	// DrainTimeout bounds how long requests accepted before the end of input may take to
	// finish and to be answered. Then their contexts end with the cause ErrClosed, and
	// one second later the peer leaves them behind. If negative, only Run's context
	// bounds it. Default: 5 s.
	DrainTimeout time.Duration

	// Logger receives one Debug record for each request handled and call
	// made, and Warn records for what went wrong on the wire. Params and
	// results are never logged. Default: none.
	Logger *slog.Logger

	// Hooks observe the peer. Default: none.
	Hooks *Hooks
}

const (
	maxDepth             = 512     // how deep arrays and objects may nest in a message
	maxPending           = 1 << 16 // how many calls may wait for an answer; a further one fails with ErrFull
	defaultMaxMessage    = 64 << 20
	defaultMaxConcurrent = 1024
	defaultMaxUnsent     = 256 << 20
	defaultDrain         = 5 * time.Second
	leaveBehind          = time.Second // grace for handlers whose context has ended
)

// Methods returns a function for [Options].Inline that reports whether a request is of one of the methods.
func Methods(names ...string) func(*Request) bool {
	return func(r *Request) bool { return slices.Contains(names, r.Method) }
}

// withDefaults returns a copy of o in which every zero has its default.
func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	def(&c.MaxMessage, defaultMaxMessage)
	def(&c.MaxConcurrent, defaultMaxConcurrent)
	def(&c.MaxUnsent, defaultMaxUnsent)
	if c.DrainTimeout == 0 {
		c.DrainTimeout = defaultDrain
	}
	c.LenientVersion = c.LenientVersion || c.OmitVersion
	return c
}

func def(v *int, d int) {
	if *v <= 0 {
		*v = d
	}
}
