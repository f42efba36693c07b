package streamable

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// exchange is one POST of 2026-07-28 as a [jsonrpc.Transport]: its only message in is
// the body, and what comes out goes to the response.
type exchange struct {
	w    *writer
	came context.Context // of the POST

	mu       sync.Mutex
	body     []byte // nil once read
	begun    bool   // the response is a stream of events
	answered bool   // the answer is on its way
	gone     bool   // the client has closed the stream
}

// exchange serves a request of 2026-07-28 until it is answered.
func (h *Handler) exchange(w http.ResponseWriter, r *http.Request, p *principal, who Principal, body []byte) {
	x := &exchange{w: newWriter(w, h.o.WriteTimeout), came: r.Context(), body: body}
	ctx := h.ctx
	if !who.may(ScopeApprove) {
		ctx = codexserver.WithoutQuestions(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Closing the stream cancels the request, unless it is answered: a client may close
	// as soon as it has read the answer, and come back for the next round.
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
	if !x.begun && !x.answered && !x.gone {
		refuse(w, http.StatusServiceUnavailable, "the server ends")
	}
}

// leave notes that the client has closed the stream, and reports whether the request
// is unanswered.
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
	if x.begun {
		return x.w.flush()
	}
	return nil
}

// write writes a message: an answer that nothing precedes is the response. x.mu is held.
func (x *exchange) write(m []byte) error {
	if x.answered {
		return errors.New("the request is answered")
	}
	out := summarize(m)
	if out.method == "" {
		x.answered = true
	}
	if !x.begun && out.method == "" {
		status := http.StatusOK
		if out.failed {
			status = statusOf(out.code, out.path)
		}
		return x.w.json(status, m)
	}
	if err := x.begin(); err != nil {
		return err
	}
	return x.w.event("", m)
}

// begin makes the response a stream of events. x.mu is held.
func (x *exchange) begin() error {
	if x.begun {
		return nil
	}
	x.begun = true
	return x.w.stream("") // it cannot be taken up again
}

// beat shows a silent client that the request lives, until ctx ends.
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
		if !x.answered && !x.gone && x.begin() == nil {
			_ = x.w.beat() // a client that has gone is noticed by its connection
		}
		x.mu.Unlock()
	}
}

// Close implements [jsonrpc.Transport].
func (x *exchange) Close() error { return nil }
