package mcphttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// exchange is one POST of 2026-07-28, as a [jsonrpc.Transport]. The peer reads the body as
// its only message, and writes to the response.
type exchange struct {
	w    *writer
	post context.Context // the context of the POST

	mu       sync.Mutex
	body     []byte // nil after Read has returned it
	answered bool   // the answer was written, or is being written
	gone     bool   // the client has closed the stream
}

// exchange serves a request of 2026-07-28 until it is answered.
func (h *Handler) exchange(w http.ResponseWriter, r *http.Request, p *principal, who Principal, body []byte) {
	x := &exchange{post: r.Context(), body: body}
	x.w = newWriter(w, h.o.WriteTimeout, func() string { return "" }) // a client cannot resume it
	ctx := h.ctx
	if !who.may(ScopeApprove) {
		ctx = approval.WithoutQuestions(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// If the client closes the stream before the answer, it cancels the request. After the
	// answer it may close the stream at once and send the next request.
	stop := context.AfterFunc(r.Context(), func() {
		if x.leave() {
			cancel(jsonrpc.ErrCancelled)
		}
	})
	defer stop()
	beating, rest := context.WithCancel(ctx)
	var beat sync.WaitGroup
	beat.Go(func() { x.beat(beating) })
	err := p.own.Exchange(ctx, x)
	rest()
	beat.Wait()
	if err != nil {
		h.o.Logger.Debug("request ended", "error", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.w.begun && !x.answered && !x.gone {
		refuse(w, http.StatusServiceUnavailable, "the server is shutting down")
	}
}

// leave records that the client has closed the stream. It reports whether the request has
// no answer yet.
func (x *exchange) leave() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.gone = true
	return !x.answered
}

// Read implements [jsonrpc.Transport].
func (x *exchange) Read(context.Context) ([]byte, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.body == nil {
		return nil, io.EOF
	}
	body := x.body
	x.body = nil
	return body, nil
}

// Write implements [jsonrpc.Transport].
func (x *exchange) Write(_ context.Context, messages [][]byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range messages {
		if err := x.write(m); err != nil {
			return err
		}
	}
	if x.w.begun {
		return x.w.flush()
	}
	return nil
}

// write writes a message. If the answer is the first message, it is the whole response;
// otherwise the response is a stream. x.mu is held.
func (x *exchange) write(m []byte) error {
	if x.answered {
		return errors.New("the request is answered")
	}
	out, _ := read(m) // the peer's own
	if out.Method == "" {
		x.answered = true
	}
	if !x.w.begun && out.Method == "" {
		return x.w.json(statusOf(&out), m)
	}
	return x.w.event("", m)
}

// beat sends a comment at each heartbeat until ctx ends.
func (x *exchange) beat(ctx context.Context) {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		x.mu.Lock()
		if !x.answered && !x.gone {
			_ = x.w.beat() // if the client has gone, the request's context ends
		}
		x.mu.Unlock()
	}
}

// Close implements [jsonrpc.Transport].
func (x *exchange) Close() error { return nil }
