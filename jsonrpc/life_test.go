package jsonrpc_test

import (
	"bufio"
	"context"
	"errors"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// raw is the other side of a peer, line by line.
type raw struct {
	t   *testing.T
	p   *jsonrpc.Peer
	in  *io.PipeWriter
	out *bufio.Reader
	end *io.PipeReader
}

// newRaw creates a peer without running it.
func newRaw(t *testing.T, h jsonrpc.Handler, o *jsonrpc.Options) *raw {
	ir, iw := io.Pipe()
	or, ow := io.Pipe()
	p := jsonrpc.NewPeer(jsonrpc.Lines(ir, ow, both{ir, ow}), h, o)
	t.Cleanup(func() { _ = p.Close() })
	return &raw{t, p, iw, bufio.NewReader(or), or}
}

// run runs the peer. The channel receives the result of Run.
func (r *raw) run(ctx context.Context) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- r.p.Run(ctx) }()
	return ended
}

// running creates a peer and runs it.
func running(t *testing.T, h jsonrpc.Handler, o *jsonrpc.Options) *raw {
	r := newRaw(t, h, o)
	r.run(context.Background())
	return r
}

func (r *raw) send(lines ...string) {
	for _, l := range lines {
		if _, err := io.WriteString(r.in, l+"\n"); err != nil {
			r.t.Errorf("send: %v", err)
		}
	}
	synctest.Wait() // until the peer has accepted the lines
}

// want reads lines and compares them.
func (r *raw) want(lines ...string) {
	r.t.Helper()
	for _, want := range lines {
		got, err := r.out.ReadString('\n')
		if diff := cmp.Diff(want, strings.TrimSuffix(got, "\n")); diff != "" || err != nil {
			r.t.Errorf("received (-want +got), %v:\n%s", err, diff)
		}
	}
}

func bubble(t *testing.T, f func(t *testing.T)) { t.Helper(); synctest.Test(t, f) }

// bubbles runs a test by its name in a bubble.
func bubbles(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRaw(t, nil, nil)
		if r.p.Err() != nil {
			t.Error("Err before the end")
		}
		ended := r.run(context.Background())
		synctest.Wait()
		if err := r.p.Run(context.Background()); err == nil {
			t.Error("Run twice")
		}
		must.OK(t, r.p.Close(), r.p.Close(), <-ended)
	})
	bubble(t, func(t *testing.T) { // never run
		r := newRaw(t, nil, nil)
		c := r.p.Start(context.Background(), "x", nil)
		must.OK(t, r.p.Shutdown(context.Background()))
		<-r.p.Done()
		wantErr(t, c.Result(nil), jsonrpc.ErrClosed, "call")
		if err := r.p.Run(context.Background()); err != nil {
			t.Errorf("Run after Close: %v", err)
		}
	})
}

// brokenEnds is a stream with one direction that fails.
type brokenEnds struct {
	read, write error
	closed      chan struct{}
}

func (b *brokenEnds) Read([]byte) (int, error) {
	if b.read == nil {
		<-b.closed
		return 0, io.ErrClosedPipe
	}
	return 0, b.read
}

func (b *brokenEnds) Write(p []byte) (int, error) { return len(p), b.write }

func (b *brokenEnds) Close() error { close(b.closed); return nil }

func TestBrokenTransport(t *testing.T) {
	broken := errors.New("broken cable")
	for _, tc := range []brokenEnds{{read: broken}, {write: broken}, {read: broken, write: broken}} {
		bubble(t, func(t *testing.T) {
			b := &brokenEnds{tc.read, tc.write, make(chan struct{})}
			p := jsonrpc.NewPeer(jsonrpc.Lines(b, b, b), nil, nil)
			c := p.Start(context.Background(), "x", nil)
			wantErr(t, p.Run(context.Background()), broken, "Run")
			wantErr(t, c.Result(nil), jsonrpc.ErrClosed, "call")
		})
	}
}

// stuck is a transport whose Close does not unblock Read and Write. It breaks the contract.
type stuck struct {
	jsonrpc.Transport
	during func() // Close, or nil
}

func (s stuck) Close() error {
	if s.during != nil {
		s.during()
	}
	return errors.New("cannot close")
}

func TestStuckTransport(t *testing.T) {
	bubble(t, func(t *testing.T) {
		x, y := jsonrpc.Pipe()
		p := jsonrpc.NewPeer(stuck{x, nil}, nil, nil)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		wantErr(t, p.Run(ctx), context.Canceled, "Run")
		if err := y.Close(); err != nil { // ends the goroutines that are left
			t.Error(err)
		}
	})
	bubble(t, func(t *testing.T) {
		x, y := jsonrpc.Pipe()
		p := jsonrpc.NewPeer(stuck{x, nil}, nil, nil)
		_ = y.Close()
		if err := p.Run(context.Background()); err == nil || err.Error() != "cannot close" {
			t.Errorf("Run: %v", err)
		}
	})
}

// A transport that Close does not unblock delivers messages after the end. Neither these
// messages nor those still waiting may start a handler.
func TestNothingStartsAfterTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var started []string
		held := make(chan struct{})
		var late func()
		var received atomic.Int64
		h := jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
			mu.Lock()
			started = append(started, r.Method)
			mu.Unlock()
			if r.Method == "held" {
				<-held
			}
			return nil, nil
		})
		x, y := jsonrpc.Pipe()
		p := jsonrpc.NewPeer(stuck{x, func() { late() }}, h, &jsonrpc.Options{
			MaxConcurrent: 1, Inline: jsonrpc.Methods("inline"),
			Hooks: &jsonrpc.Hooks{Received: func([]byte) { received.Add(1) }},
		})
		ended := make(chan error, 1)
		go func() { ended <- p.Run(context.Background()) }()
		write := func(id, method string) {
			err := y.Write(context.Background(), [][]byte{[]byte(`{"jsonrpc":"2.0",` + id + `"method":"` + method + `"}`)})
			if err != nil {
				t.Error(err)
			}
		}
		send := func(id, method string) { write(id, method); synctest.Wait() }
		send(`"id":1,`, "held")
		send(`"id":2,`, "waiting")
		send("", "held")
		send("", "queued")
		// During Close, whose lock synctest.Wait would wait for. One at a time: what is written ahead of the
		// reader stays in the pipe when the reader ends, and the writes below would wait for room.
		late = func() {
			for _, m := range [][2]string{{`"id":3,`, "late"}, {"", "late"}, {`"id":4,`, "inline"}, {"", "inline"}} {
				before := received.Load()
				write(m[0], m[1])
				for received.Load() == before {
					runtime.Gosched()
				}
			}
		}
		_ = p.Close()
		<-ended // leaves the two handlers behind
		send(`"id":3,`, "late")
		send("", "late")
		send(`"id":4,`, "inline")
		close(held)
		synctest.Wait()
		must.Equal(t, "handlers started", []string{"held", "held"}, started)
	})
}

// noLimit hides that a transport can refuse long messages by itself.
type noLimit struct{ jsonrpc.Transport }

func (t noLimit) Write(ctx context.Context, messages [][]byte) error {
	if ctx == nil {
		return errors.New("a Write without a context")
	}
	return t.Transport.Write(ctx, messages)
}

func TestLimitWithoutTransport(t *testing.T) {
	x, y := jsonrpc.Pipe()
	p := jsonrpc.NewPeer(noLimit{x}, echoMux(), &jsonrpc.Options{MaxMessage: 10})
	go func() { _ = p.Run(context.Background()) }()
	ctx := context.Background()
	must.OK(t, y.Write(ctx, [][]byte{[]byte(`{"jsonrpc":"2.0","id":1,"method":"raw"}`)}))
	got, err := y.Read(ctx)
	if diff := cmp.Diff(`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"message is longer than 10 bytes"}}`, string(got)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	must.OK(t, p.Close())
	<-p.Done()
}

// faulty is a transport whose first Read fails.
type faulty struct {
	jsonrpc.Transport
	err error
}

func (f *faulty) Read(ctx context.Context) ([]byte, error) {
	if err := f.err; err != nil {
		f.err = nil
		return nil, err
	}
	return f.Transport.Read(ctx)
}

// TestOneBrokenMessage checks that an Error of a transport is answered, and the next message read.
func TestOneBrokenMessage(t *testing.T) {
	ctx := context.Background()
	x, y := jsonrpc.Pipe()
	var problems []string
	p := jsonrpc.NewPeer(&faulty{x, jsonrpc.Errorf(jsonrpc.CodeParseError, "torn")}, echoMux(), &jsonrpc.Options{
		Hooks: &jsonrpc.Hooks{Problem: func(err error, _ []byte) { problems = append(problems, err.Error()) }},
	})
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	must.OK(t, y.Write(ctx, [][]byte{[]byte(`{"jsonrpc":"2.0","id":1,"method":"raw","params":[1]}`)}))
	for _, want := range []string{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"torn"}}`, `{"jsonrpc":"2.0","id":1,"result":[1]}`} {
		got, err := y.Read(ctx)
		if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	must.OK(t, y.Close(), <-ended)
	must.Equal(t, "problems", []string{"torn (-32700)"}, problems)
}

// broken is an output that nobody reads any more.
type broken struct{}

var errBroken = errors.New("broken pipe")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// ending is a closer with an error.
type ending struct {
	io.Closer
	err error
}

func (e ending) Close() error { return errors.Join(e.Closer.Close(), e.err) }

// TestBrokenPipe writes to a child that has exited. Run also returns why closing the transport fails: the exit status.
func TestBrokenPipe(t *testing.T) {
	status := errors.New("exit status 2")
	for want, err := range map[string]error{"jsonrpc: write: broken pipe (exit status 2)": status, "jsonrpc: write: broken pipe": nil} {
		in, other := io.Pipe()
		defer other.Close()
		p := jsonrpc.NewPeer(jsonrpc.Lines(in, broken{}, ending{in, err}), nil, nil)
		ended := make(chan error, 1)
		go func() { ended <- p.Run(t.Context()) }()
		_ = p.Call(t.Context(), "x", nil, nil)
		if got := <-ended; got == nil || got.Error() != want || !errors.Is(got, errBroken) || err != nil && !errors.Is(got, err) {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

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
		bubbles(t, name, func(t *testing.T) {
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
			must.Equal(t, "it took", tt.after, time.Since(start))
			for what, err := range map[string]error{
				"a pending call": pending.Result(nil), "a call": r.p.Call(bg, "x", nil, nil), "a notification": r.p.Notify(bg, "x", nil), "a flush": r.p.Flush(bg),
			} {
				if !errors.Is(err, jsonrpc.ErrClosed) {
					t.Errorf("%s at the end: %v", what, err)
				}
			}
			close(rude)
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
		must.OK(t, r.p.Notify(bg, "fill", text{strings.Repeat("x", 60)}))
		brief, stop := context.WithTimeout(bg, time.Second)
		defer stop()
		r.run(bg)
		wantErr(t, r.p.Flush(brief), context.DeadlineExceeded, "a flush that ends first")
		sent := make(chan error, 2)
		go func() { sent <- r.p.Flush(bg) }()
		synctest.Wait()
		_ = r.p.Close()
		sent <- r.p.Notify(bg, "late", nil)
		for range 2 {
			wantErr(t, <-sent, jsonrpc.ErrClosed)
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
		must.Equal(t, "the result", `{"jsonrpc":"2.0","id":0,"method":"x"}`, string(<-got))
		for range 1000 { // more than the pipe holds, and nobody reads
			p.Start(context.Background(), "x", nil)
		}
		_, _ = p.Close(), c.Result(nil)
		<-ended
	})
}

// TestReaders sends one request after another. Two goroutines read and handle them in turn. More come only while handlers do not
// return, and one that a handler ends is replaced. A bubble ends with the last of them.
func TestReaders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		seen := map[string]bool{} // the goroutines of the handlers
		r := running(t, jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
			name, _, _ := strings.Cut(stacks(false), " [")
			seen[name] = true
			switch r.Method {
			case "exit", "inline":
				runtime.Goexit()
			case "wait":
				<-gate
			}
			return nil, nil
		}), &jsonrpc.Options{Inline: func(r *jsonrpc.Request) bool { return r.Method == "inline" }})
		inTurn := func(method string, times, want int) {
			t.Helper()
			clear(seen)
			for range times {
				r.send(`{"jsonrpc":"2.0","id":1,"method":"` + method + `"}`)
				_, err := r.out.ReadString('\n')
				must.OK(t, err)
				synctest.Wait()
			}
			must.Equal(t, "the goroutines of "+method, want, len(seen))
		}
		inTurn("quick", 20, 2)
		inTurn("exit", 20, 20)
		inTurn("quick", 20, 2)
		inTurn("inline", 20, 20)
		inTurn("quick", 20, 2)
		clear(seen)
		for _, id := range []string{"1", "2", "3", "4"} {
			r.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"wait"}`)
		}
		must.Equal(t, "the goroutines of four at once", 4, len(seen))
		close(gate)
		for range 4 {
			_, err := r.out.ReadString('\n')
			must.OK(t, err)
		}
		synctest.Wait()
		must.Equal(t, "the goroutines that stay", 2, strings.Count(stacks(true), "jsonrpc.(*Peer).read("))
		inTurn("quick", 20, 2)
	})
}

// stacks returns the stack of the goroutine that calls it, or of all.
func stacks(all bool) string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, all)])
}
