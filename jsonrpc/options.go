package jsonrpc

import (
	"log/slog"
	"slices"
	"time"
)

// Options configure a [Peer]. Nil and zero values mean the defaults.
type Options struct {
	// Cancellation is [MCPCancel], [LSPCancel] or a *[CancelProfile]. Default: requests are not cancelled over the wire.
	Cancellation Cancellation

	// Inline reports whether a request or notification is handled on the reader, ahead of notifications that
	// wait, see [Methods]. Its handler must not block, and must not call the other side: the answers to what came
	// before may wait for it. Default: none is.
	Inline func(r *Request) bool

	// Batches is asked when an array of messages comes, and reports whether the peer accepts it. Up to 256
	// messages are handled as if they had come one by one; their answers leave together, when the last is
	// there, and count up to twice MaxUnsent: then the connection is closed. Default: none is accepted.
	Batches func() bool

	// LenientVersion accepts messages whose jsonrpc member is absent or another string.
	LenientVersion bool

	// LenientAnswers reads answers as clients of MCP do: of a result and an error the one that is null is absent,
	// as is a method; the code of an error may be a text or a fraction, bytes may be no UTF-8, and a byte-order
	// mark may stand before them. Two nulls, two that are none, and neither of both fail the call.
	LenientAnswers bool

	// TextIDs lets the id of an answer be a text with the integer as the request had it: "1", not "01" or "+1". The
	// ids of requests and cancellations stay exact.
	TextIDs bool

	// OmitVersion sends no jsonrpc member, as some dialects do, and implies LenientVersion.
	OmitVersion bool

	// MaxMessage is the longest message accepted, in bytes, without the end of its line; arrays and objects may nest 512 deep. A longer or
	// deeper one is skipped: a request is answered, a response fails its call, a notification is reported. It
	// also bounds all that wait to be handled: beyond it a request is answered with CodeOverloaded and a
	// notification dropped, which Hooks.Problem reports. Default: 64 MiB.
	MaxMessage int

	// MaxConcurrent is how many requests are handled at the same time; further ones wait. A request holds its
	// place until it has been answered, also while its handler calls back or has left the answer to a
	// [Responder], so sides that call each other deeper than this wait for each other. Inline requests take a
	// place when they detach, above the limit if none is free. Default: 1024.
	MaxConcurrent int

	// MaxUnsent is how many bytes may wait for the other side to read. Beyond it notifications and calls fail
	// with [ErrFull], and the goroutine that answers a request waits. Answers of the reader itself are queued up
	// to twice that; then the connection is closed with ErrFull. Default: 256 MiB.
	MaxUnsent int

	// DrainTimeout is how long requests accepted before the end of input may take. Then their contexts end with
	// the cause ErrClosed, and the peer leaves them behind after a second. Negative: no bound. Default: 5 s.
	DrainTimeout time.Duration

	// Logger receives a Debug record for each request handled and call made, and a Warn record for what went
	// wrong on the wire. Params and results are never logged. Default: none.
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

// Methods returns an [Options].Inline that is true for these methods.
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
