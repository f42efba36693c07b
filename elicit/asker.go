package elicit

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/internal/slots"
)

// method is the request that asks (MCP 2025-06-18, client/elicitation).
const method = "elicitation/create"

// A Caller sends requests to the client; *jsonrpc.Peer is one. Call must return when ctx
// ends, and should then send the client notifications/cancelled. The error of an error
// answer must wrap a *jsonrpc.Error, that of a lost connection jsonrpc.ErrClosed.
type Caller interface {
	Call(ctx context.Context, method string, params, result any) error
}

// A CallFunc is a function that sends one elicitation/create request with the given params
// and returns the raw result. It makes a Caller of any SDK that can send one.
type CallFunc func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)

// Call calls f. It ignores the method, which is always elicitation/create. params is
// always a json.RawMessage, result always a *json.RawMessage.
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
	open    slots.Slots

	warnedUnsupported, loggedFlat atomic.Bool
}

// NewAsker returns an Asker that reaches client through caller. It starts no goroutines
// and does not have to be closed.
func NewAsker(caller Caller, client Client, o *Options) *Asker {
	opt := o.resolved()
	return &Asker{caller: caller, client: client, can: client.CanAsk(), options: opt, open: slots.New(opt.MaxPending)}
}

// Ask asks q and returns how it ended. It always returns an outcome, at the latest soon
// after ctx ends. Pass the turn's context: when it ends, the decision is Abort, even if an
// approval has just arrived.
func (a *Asker) Ask(ctx context.Context, q *Question) Outcome {
	out := a.ask(ctx, q)
	// A message that would be the same for every question gets a high level only once.
	switch {
	case out.Reason == ReasonUnsupported && out.Decision != Approved:
		if a.warnedUnsupported.Swap(true) {
			out.Level = slog.LevelDebug
		}
	case strings.HasPrefix(out.Detail, legacyFlat):
		if a.loggedFlat.Swap(true) {
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
	q = q.For(a.client, a.options)
	result, took, late, err := a.send(ctx, q)
	var out Outcome
	switch {
	case ctx.Err() != nil:
		return q.ReadError(context.Canceled, a.options)
	case err == nil:
		out = q.Read(result, a.options)
	case late:
		return q.ReadError(context.DeadlineExceeded, a.options)
	default:
		out = q.ReadError(err, a.options)
	}
	out.Took = took
	return out
}

// Forward asks q, which is no approval, and returns the raw result. It counts among the open
// questions as those of Ask do. The error is that of the [Caller], or why there is no answer.
func (a *Asker) Forward(ctx context.Context, q *Question) (json.RawMessage, error) {
	if !a.can {
		return nil, ErrUnsupported
	}
	result, _, _, err := a.send(ctx, q)
	return result, err
}

// send sends q when few enough questions are open, and returns the raw result, how long it took, and whether the time was over.
func (a *Asker) send(
	ctx context.Context, q *Question,
) (result json.RawMessage, took time.Duration, late bool, err error) {
	params, err := q.Params(a.client, a.options)
	if err != nil {
		return nil, 0, false, err
	}
	leave, err := a.open.Take(ctx)
	if err != nil {
		return nil, 0, false, ctx.Err()
	}
	defer leave()
	ctx, cancel := a.options.WithTimeout(ctx)
	defer cancel()
	sent := time.Now()
	err = a.caller.Call(ctx, method, params, &result)
	return result, time.Since(sent), ctx.Err() != nil, err
}
