package mcphttp

import (
	"context"
	"net/http"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// exchange serves a request of 2026-07-28 until it is answered. It is a session that nobody can find: the peer reads the
// body as its only message, and what it writes is on the stream of that request.
func (h *Handler) exchange(
	w http.ResponseWriter, r *http.Request, p *principal, who Principal, e *envelope, body []byte,
) {
	x := h.newSession("", p, who)
	x.in <- body
	close(x.in)
	st := &stream{session: x, open: 1}
	x.only, x.requests[e.id], e.stream = st, e, st
	ctx, cancel := context.WithCancelCause(h.ctx)
	defer cancel(nil)
	// If the client closes the stream before the answer, it cancels the request. After the
	// answer it may close the stream at once and send the next request.
	left := func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if !st.done {
			cancel(jsonrpc.ErrCancelled)
		}
	}
	defer context.AfterFunc(r.Context(), left)()
	x.mu.Lock()
	me := x.attach(st, 0) // before the first event, since none without a reader is kept
	x.mu.Unlock()
	served := make(chan struct{})
	go func() {
		defer close(served)
		x.run(ctx, p.own.Exchange)
	}()
	st.serve(w, r, me, false)
	left() // also if a write has failed
	<-served
}
