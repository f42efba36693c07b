package jsonrpc

import (
	"context"
	"log/slog"
	"time"
)

// Hooks observe a peer; each may be nil. They run on the goroutine where the event happens, often the reader,
// so they must be quick, and not call it.
type Hooks struct {
	// Received is called with each message read, before it is looked at, and Sent with each message queued for
	// writing. The slice is only lent.
	Received, Sent func(line []byte)

	// Problem is called for what fails nothing else: a broken line, an answer that no call waits for
	// ([ErrNoCall]), a dropped notification, a cancel notification for an unknown request.
	Problem func(err error, line []byte)

	// InputEnd is called once when nothing more will be read, with what went wrong, if something did.
	InputEnd func(err error)
}

// problem reports what is wrong with the traffic. No lock is held, and the message is only lent to
// the hook. Only its length is logged, since its content may
// be secret.
func (p *Peer) problem(err error, line []byte) {
	if h := p.o.Hooks; h != nil && h.Problem != nil {
		h.Problem(err, line)
	}
	if p.o.Logger != nil {
		p.o.Logger.Warn("jsonrpc: "+err.Error(), slog.Int("bytes", len(line)))
	}
}

// logged is a handler that logs what next handles. Whether the level is enabled is asked for each
// request, because it may be changed while the program runs.
func logged(l *slog.Logger, next Handler) Handler {
	return HandlerFunc(func(ctx context.Context, r *Request) (any, error) {
		if !l.Enabled(ctx, slog.LevelDebug) {
			return next.ServeRPC(ctx, r)
		}
		start := time.Now()
		v, err := next.ServeRPC(ctx, r)
		logOne(ctx, l, "jsonrpc: handled", r.ID, r.Method, len(r.Params), start, err)
		return v, err
	})
}

// logOne writes the record of one request or call: its method, size and result code, and nothing of
// its content.
func logOne(
	ctx context.Context, l *slog.Logger, msg string, id ID, method string, size int, start time.Time, err error,
) {
	attrs := []slog.Attr{
		slog.String("method", method),
		slog.Int("bytes", size),
		slog.Duration("took", time.Since(start)),
	}
	if !id.IsZero() {
		attrs = append(attrs, slog.String("id", id.String()))
	}
	if err != nil {
		attrs = append(attrs, slog.Int64("code", int64(asError(err).Code)))
	}
	l.LogAttrs(ctx, slog.LevelDebug, msg, attrs...)
}

// began returns the function that logs the end of an outgoing call, or nil.
func (p *Peer) began(ctx context.Context, method string, id ID) func(error) {
	l := p.o.Logger
	if l == nil || !l.Enabled(ctx, slog.LevelDebug) {
		return nil
	}
	start := time.Now()
	return func(err error) { logOne(ctx, l, "jsonrpc: called", id, method, 0, start, err) }
}
