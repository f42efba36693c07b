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

// TestEnds checks every way to end, with a handler that ends with its context, after an hour, or not at all: what its
// request is answered, what Run returns and when, and that no request begins meanwhile.
func TestEnds(t *testing.T) {
	const (
		result = `"result":{}}`
		failed = `"error":{"code":-32603,"message":"signal"}}`
		closed = `"error":{"code":-32603,"message":"jsonrpc: connection closed"}}`
	)
	bg, why := context.Background(), errors.New("signal")
	input := func(r *raw, _ func()) { _ = r.in.Close() }
	inputThenContext := func(r *raw, cancel func()) { _ = r.in.Close(); synctest.Wait(); cancel() }
	byContext := func(_ *raw, cancel func()) { cancel() }
	byClose := func(r *raw, _ func()) { _ = r.p.Close() }
	shutdown := func(r *raw, _ func()) { go r.p.Shutdown(bg) }
	shutdownThenContext := func(r *raw, cancel func()) { go r.p.Shutdown(bg); synctest.Wait(); cancel() }
	for name, tt := range map[string]struct {
		handler string
		drain   time.Duration
		end     func(r *raw, cancel func())
		answer  string // "" for none
		err     error
		after   time.Duration
		late    string // the answer to a request that comes then
	}{
		"rude: the context":                      {"rude", 0, byContext, "", why, 2 * time.Second, "shutting down"},
		"rude: Close":                            {"rude", 0, byClose, "", nil, time.Second, ""},
		"rude: the input":                        {"rude", 0, input, "", nil, 7 * time.Second, ""},
		"rude: the input, within a minute":       {"rude", time.Minute, input, "", nil, 62 * time.Second, ""},
		"rude: the input, then Close":            {"rude", 0, func(r *raw, _ func()) { _ = r.in.Close(); synctest.Wait(); _ = r.p.Close() }, "", nil, time.Second, ""},
		"rude: the input, then the context":      {"rude", 0, inputThenContext, "", why, 2 * time.Second, ""},
		"rude: no bound, then the context":       {"rude", -1, inputThenContext, "", why, 2 * time.Second, ""},
		"rude: Shutdown, then the context":       {"rude", 0, shutdownThenContext, "", why, 2 * time.Second, "shutting down"},
		"the context":                            {"hang", 0, byContext, failed, why, 0, ""},
		"Close":                                  {"hang", 0, byClose, "", nil, 0, ""},
		"the input, within a minute":             {"hang", time.Minute, input, closed, nil, time.Minute, ""},
		"the input, no bound, then the context":  {"hang", -1, inputThenContext, failed, why, 0, ""},
		"Shutdown, then the context":             {"hang", 0, shutdownThenContext, failed, why, 0, ""},
		"Shutdown, cut short by its own context": {"hang", 0, shutdownForASecond, "", nil, time.Second, "shutting down"},
		"an hour: the input, no bound":           {"hour", -1, input, result, nil, time.Hour, ""},
		"an hour: Shutdown":                      {"hour", 0, shutdown, result, nil, time.Hour, "shutting down"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				rude := make(chan struct{})
				handlers := map[string]jsonrpc.HandlerFunc{
					"rude": func(context.Context, *jsonrpc.Request) (any, error) { <-rude; return nil, nil },
					"hang": func(ctx context.Context, _ *jsonrpc.Request) (any, error) {
						<-ctx.Done()
						return nil, context.Cause(ctx)
					},
					"hour": func(context.Context, *jsonrpc.Request) (any, error) { <-time.After(time.Hour); return struct{}{}, nil },
				}
				r := newRaw(t, handlers[tt.handler], &jsonrpc.Options{DrainTimeout: tt.drain})
				ctx, cancel := context.WithCancelCause(bg)
				ended, start := r.run(ctx), time.Now()
				pending := r.p.Start(bg, "x", nil)
				r.want(`{"jsonrpc":"2.0","id":0,"method":"x"}`)
				r.send(`{"jsonrpc":"2.0","id":1,"method":"it"}`)
				tt.end(r, func() { cancel(why) })
				synctest.Wait()
				if tt.late != "" {
					r.send(`{"jsonrpc":"2.0","id":2,"method":"late"}`)
					r.want(`{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"` + tt.late + `"}}`)
				}
				if tt.answer != "" {
					r.want(`{"jsonrpc":"2.0","id":1,` + tt.answer)
				}
				if err := <-ended; !errors.Is(err, tt.err) || !errors.Is(r.p.Err(), tt.err) {
					t.Errorf("Run: %v, Err: %v", err, r.p.Err())
				}
				if took := time.Since(start); took != tt.after {
					t.Errorf("it took %v, want %v", took, tt.after)
				}
				for what, err := range map[string]error{
					"a pending call": pending.Result(nil), "a call": r.p.Call(bg, "x", nil, nil), "a notification": r.p.Notify(bg, "x", nil), "a flush": r.p.Flush(bg),
				} {
					if !errors.Is(err, jsonrpc.ErrClosed) {
						t.Errorf("%s at the end: %v", what, err)
					}
				}
				close(rude)
			})
		})
	}
}

func shutdownForASecond(r *raw, _ func()) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	go func() {
		defer cancel()
		if err := r.p.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			r.t.Errorf("Shutdown: %v", err)
		}
	}()
}

// TestSendersEnd checks that what waits for the other side to read learns of the end, and what comes
// after it does not wait.
func TestSendersEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRaw(t, nil, nil)
		bg := context.Background()
		must(t, r.p.Notify(bg, "fill", text{strings.Repeat("x", 60)}))
		brief, stop := context.WithTimeout(bg, time.Second)
		defer stop()
		r.run(bg)
		if err := r.p.Flush(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a flush that ends first: %v", err)
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
