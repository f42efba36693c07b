package jsonrpc_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestRudeHandlers checks that every way to end ends, although a handler ignores its context, and
// that no request begins meanwhile.
func TestRudeHandlers(t *testing.T) {
	why := errors.New("signal")
	for name, tt := range map[string]struct {
		end   func(r *raw, cancel func())
		err   error
		after time.Duration
		late  string // the answer to a request that comes then
	}{
		"the context":                 {func(_ *raw, cancel func()) { cancel() }, why, 2 * time.Second, "shutting down"},
		"Close":                       {func(r *raw, _ func()) { _ = r.p.Close() }, nil, time.Second, ""},
		"the input":                   {func(r *raw, _ func()) { _ = r.in.Close() }, nil, 7 * time.Second, ""},
		"the input, then Close":       {func(r *raw, _ func()) { _ = r.in.Close(); synctest.Wait(); _ = r.p.Close() }, nil, time.Second, ""},
		"the input, then the context": {func(r *raw, cancel func()) { _ = r.in.Close(); synctest.Wait(); cancel() }, why, 2 * time.Second, ""},
		"Shutdown, then the context":  {func(r *raw, cancel func()) { go r.p.Shutdown(context.Background()); synctest.Wait(); cancel() }, why, 2 * time.Second, "shutting down"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				rude := make(chan struct{})
				h := jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) (any, error) { <-rude; return nil, nil })
				r := newRaw(t, h, nil)
				ctx, cancel := context.WithCancelCause(context.Background())
				ended, start := r.run(ctx), time.Now()
				r.send(`{"jsonrpc":"2.0","id":1,"method":"rude"}`)
				tt.end(r, func() { cancel(why) })
				synctest.Wait()
				if tt.late != "" {
					r.send(`{"jsonrpc":"2.0","id":2,"method":"late"}`)
					r.want(`{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"` + tt.late + `"}}`)
				}
				if err := <-ended; !errors.Is(err, tt.err) {
					t.Errorf("Run: %v", err)
				}
				if took := time.Since(start); took != tt.after {
					t.Errorf("it took %v, want %v", took, tt.after)
				}
				close(rude)
			})
		})
	}
}

// TestSendersEnd checks that what waits for the other side to read learns of the end, and what comes
// after it does not wait.
func TestSendersEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRaw(t, nil, nil)
		bg := context.Background()
		if err := r.p.Notify(bg, "fill", text{strings.Repeat("x", 60)}); err != nil {
			t.Fatal(err)
		}
		sent := make(chan error, 2)
		go func() { sent <- r.p.Flush(bg) }()
		synctest.Wait()
		_ = r.p.Close()
		sent <- r.p.Notify(bg, "late", nil)
		for range 2 {
			if err := <-sent; !errors.Is(err, jsonrpc.ErrClosed) {
				t.Errorf("got %v", err)
			}
		}
	})
}

// TestNothingIsSentBeforeRun checks that messages wait for Run.
func TestNothingIsSentBeforeRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		x, y := jsonrpc.Pipe()
		p := jsonrpc.NewPeer(x, nil, nil)
		got := make(chan []byte, 1)
		go func() {
			line, _ := y.Read(context.Background())
			got <- line
		}()
		c := p.Start(context.Background(), "x", nil)
		synctest.Wait()
		if len(got) > 0 {
			t.Errorf("it is sent: %s", <-got)
		}
		ended := make(chan error, 1)
		go func() { ended <- p.Run(context.Background()) }()
		if line := string(<-got); line != `{"jsonrpc":"2.0","id":0,"method":"x"}` {
			t.Errorf("got %s", line)
		}
		for range 1000 { // more than the pipe holds, and nobody reads
			p.Start(context.Background(), "x", nil)
		}
		_, _ = p.Close(), c.Result(nil)
		<-ended
	})
}
