package elicit

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
)

// method is the request that asks (MCP 2025-06-18, client/elicitation).
const method = "elicitation/create"

// A Caller sends requests to the client; *jsonrpc.Peer is one. Call must return when ctx
// ends, and should send the client notifications/cancelled, since the answer is no longer
// wanted. An error answer must be a *jsonrpc.Error in the error's chain, a lost
// connection jsonrpc.ErrClosed.
type Caller interface {
	Call(ctx context.Context, method string, params, result any) error
}

// A CallFunc is a Caller made of a function that sends one elicitation/create
// request with the given params and returns its raw result. It adapts any SDK
// that can send one.
type CallFunc func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)

// Call calls f. The method is always elicitation/create here, params always a
// json.RawMessage and result always a *json.RawMessage.
func (f CallFunc) Call(ctx context.Context, _ string, params, result any) error {
	sent, _ := params.(json.RawMessage)
	received, ok := result.(*json.RawMessage)
	if !ok {
		return errors.New("elicit: a CallFunc returns raw results only")
	}
	raw, err := f(ctx, sent)
	*received = raw
	return err
}

// An Asker asks one client. It is safe for concurrent use: several questions may be open,
// up to Options.MaxPending, and answers may come in any order.
type Asker struct {
	caller  Caller
	client  Client
	can     bool
	options *Options
	open    *slots

	warnedUnsupported, toldFlat atomic.Bool
}

// NewAsker returns an Asker that reaches client by way of caller. It keeps no
// goroutines and needs no closing.
func NewAsker(caller Caller, client Client, o *Options) *Asker {
	opt := o.resolved()
	return &Asker{
		caller:  caller,
		client:  client,
		can:     client.CanAsk(),
		options: opt,
		open:    newSlots(opt.MaxPending),
	}
}

// Ask asks q and returns how it ended. It always returns an outcome, at the latest soon
// after ctx ends. ctx is the turn's: its end means Abort, even if an approval has just
// come in.
func (a *Asker) Ask(ctx context.Context, q *Question) Outcome {
	out := a.ask(ctx, q)
	// What is the same for every question is logged at a higher level only once.
	switch {
	case out.Reason == ReasonUnsupported && out.Decision != Approved:
		if a.warnedUnsupported.Swap(true) {
			out.Level = slog.LevelDebug
		}
	case out.flat && out.Level == slog.LevelInfo:
		if a.toldFlat.Swap(true) {
			out.Level = slog.LevelDebug
		}
	}
	return out
}

func (a *Asker) ask(ctx context.Context, q *Question) Outcome {
	if ctx.Err() != nil {
		return q.ReadError(context.Canceled, a.options)
	}
	if !a.can {
		return q.ReadError(ErrUnsupported, a.options)
	}
	params, err := q.Params(a.client, a.options)
	if err != nil {
		return q.ReadError(err, a.options)
	}
	if err := a.open.acquire(ctx); err != nil {
		return q.ReadError(context.Canceled, a.options)
	}
	defer a.open.release()

	timed, cancel := a.options.WithTimeout(ctx)
	defer cancel()
	var result json.RawMessage
	err = a.caller.Call(timed, method, params, &result)
	switch {
	case ctx.Err() != nil:
		return q.ReadError(context.Canceled, a.options)
	case err == nil:
		return q.Read(result, a.options)
	case timed.Err() != nil:
		return q.ReadError(context.DeadlineExceeded, a.options)
	}
	return q.ReadError(err, a.options)
}
