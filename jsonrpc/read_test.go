package jsonrpc

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"testing"
	"time"
)

// overPipes runs a peer that handles requests with h, and a client of it, over pipes of the
// operating system. The server already knows that the method "x" is quick.
func overPipes(t *testing.T, framing func(io.Reader, io.Writer, io.Closer) Transport, h func(context.Context, *Request) (any, error)) (client, server *Peer) {
	t.Helper()
	ar, bw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	br, aw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{Cancellation: MCPCancel, Inline: []string{"inline"}, Hooks: &Hooks{Problem: func(err error, _ []byte) {
		if err.Error() == "goroutines left behind at the end" {
			t.Error(err)
		}
	}}}
	quick := true // until the server knows that the method is quick
	handler := HandlerFunc(func(ctx context.Context, r *Request) (any, error) {
		if quick && r.Method == "x" {
			return nil, nil
		}
		return h(ctx, r)
	})
	answers := new(Mux)
	answers.Default(HandlerFunc(func(context.Context, *Request) (any, error) { return nil, nil }))
	client = NewPeer(framing(ar, aw, closers{ar, aw}), answers, o)
	server = NewPeer(framing(br, bw, closers{br, bw}), handler, o)
	for _, p := range []*Peer{client, server} {
		go func() { _ = p.Run(context.Background()) }()
	}
	t.Cleanup(func() {
		_, _ = client.Close(), server.Close()
		<-client.Done()
		<-server.Done()
	})
	for server.reading.lendings.Load() == 0 { // takes at most 16 quick calls in a row
		if err := client.Call(t.Context(), "x", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	quick = false
	trust(server)
	for server.Stats().Sent != client.Stats().Received { // the answer was read before it was counted
		runtime.Gosched()
	}
	return client, server
}

// trust marks the method "x" as quick, even if it was slow on a busy machine.
func trust(p *Peer) {
	for p.Stats().Running > 0 { // the answer was sent, but the request has not ended
		runtime.Gosched()
	}
	p.methods["x"].streak.Store(proof)
}

type closers []io.Closer

func (c closers) Close() error {
	var errs []error
	for _, c := range c {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

var framings = map[string]func(io.Reader, io.Writer, io.Closer) Transport{"Lines": Lines, "Header": Header}

// TestLentReadingContinues checks that a handler that the reader runs can wait for another
// message.
func TestLentReadingContinues(t *testing.T) {
	for name, framing := range framings {
		t.Run(name, func(t *testing.T) {
			open, began, cancelled := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			client, server := overPipes(t, framing, func(ctx context.Context, r *Request) (any, error) {
				switch {
				case r.Method == "open":
					close(open)
				case string(r.Params) == `["call back"]`:
					return nil, r.Peer().Call(ctx, "y", nil, nil)
				case string(r.Params) == `["cancel"]`:
					began <- struct{}{}
					<-ctx.Done()
					cancelled <- context.Cause(ctx)
				case string(r.Params) == `["request"]`:
					began <- struct{}{}
					<-open
				}
				return nil, nil
			})
			lent := func() uint64 { return server.reading.lendings.Load() }

			before := lent()
			if err := client.Call(t.Context(), "x", []string{"call back"}, nil); err != nil {
				t.Error(err)
			}
			trust(server)
			ctx, cancel := context.WithCancel(t.Context())
			c := client.Start(ctx, "x", []string{"cancel"})
			<-began
			cancel()
			if err := <-cancelled; !errors.Is(err, ErrCancelled) {
				t.Errorf("cause %v", err)
			}
			if err := c.Result(nil); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			trust(server)
			c = client.Start(t.Context(), "x", []string{"request"})
			<-began
			if err := client.Call(t.Context(), "open", nil, nil); err != nil {
				t.Error(err)
			}
			if err := c.Result(nil); err != nil {
				t.Error(err)
			}
			if n := lent(); n < before+3 {
				t.Errorf("the reader handled %d requests, want 3", n-before)
			}
		})
	}
}

// TestLentGoexit checks that reading continues after a handler ended the goroutine that it
// shares with the reader. If another goroutine has already taken over, no second reader is
// started.
func TestLentGoexit(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	client, server := overPipes(t, Lines, func(_ context.Context, r *Request) (any, error) {
		switch {
		case r.Params == nil:
			runtime.Goexit()
		case r.Method == "x":
			close(entered)
			<-leave
			runtime.Goexit()
		}
		return nil, nil
	})
	for _, method := range []string{"inline", "x"} { // the reader has lent before, and lends again
		if err := client.Call(t.Context(), method, nil, nil); !errors.Is(err, CodeInternalError) {
			t.Errorf("%s: got %v", method, err)
		}
	}
	trust(server)
	c := client.Start(t.Context(), "x", []int{})
	<-entered
	if err := client.Call(t.Context(), "y", []int{}, nil); err != nil { // read by another
		t.Error(err)
	}
	close(leave)
	if err := c.Result(nil); !errors.Is(err, CodeInternalError) {
		t.Errorf("got %v", err)
	}
	if err := client.Call(t.Context(), "y", []int{}, nil); err != nil {
		t.Error(err)
	}
}

// TestLentBatch checks that a request of a batch is handled although another could be read meanwhile.
func TestLentBatch(t *testing.T) {
	handled := make(chan struct{})
	client, server := overPipes(t, Lines, func(context.Context, *Request) (any, error) { close(handled); return nil, nil })
	server.AcceptBatches()
	b := getBuffer()
	b.WriteString(`[{"jsonrpc":"2.0","id":"b","method":"x"}]`)
	if err := client.send(t.Context(), b, regardless, byWriter); err != nil {
		t.Fatal(err)
	}
	<-handled
}

// TestLentEnd checks that the reader notices the end while it runs a handler.
func TestLentEnd(t *testing.T) {
	for name, end := range map[string]func(client, server *Peer) error{
		"of input": func(client, _ *Peer) error { return client.Close() },
		"by Close": func(_, server *Peer) error { return server.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			entered, left := make(chan struct{}), make(chan struct{})
			client, server := overPipes(t, Lines, func(ctx context.Context, r *Request) (any, error) {
				close(entered)
				select {
				case <-ctx.Done():
				case <-left:
				}
				return nil, nil
			})
			c := client.Start(t.Context(), "x", nil)
			<-entered
			if err := end(client, server); err != nil {
				t.Error(err)
			}
			if err := c.Result(nil); !errors.Is(err, ErrClosed) {
				t.Errorf("got %v", err)
			}
			close(left) // the answer cannot be sent
			<-server.Done()
		})
	}
}

// TestSlowHandlerLosesTheReader checks that after one handler that took longer than a millisecond the reader
// does not run those of its method, because other requests would wait for them.
func TestSlowHandlerLosesTheReader(t *testing.T) {
	client, server := overPipes(t, Lines, func(_ context.Context, r *Request) (any, error) {
		for began := time.Now(); r.Params != nil && time.Since(began) <= slow; {
			runtime.Gosched()
		}
		return nil, nil
	})
	server.methods["x"].streak.Store(4 * proof)
	if err := client.Call(t.Context(), "x", []int{}, nil); err != nil {
		t.Fatal(err)
	}
	lent := server.reading.lendings.Load()
	for range 2 * proof {
		if err := client.Call(t.Context(), "x", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := server.reading.lendings.Load() - lent; n > 0 {
		t.Errorf("the reader handled %d requests", n)
	}
}

// TestQuickMethods checks what each request of a method changes: a quick one proves a little, one that is not
// takes away as much as 16 have proved, and nothing from a method that has lost its place on the reader. A slow
// one always costs the place.
func TestQuickMethods(t *testing.T) {
	for _, tt := range []struct {
		streak int32
		took   time.Duration
		want   int32
	}{
		{0, quick, 1}, {0, quick + 1, 0}, {-longer, quick, 1 - longer}, {-5, quick + 1, -5},
		{4*proof - 1, quick, 4 * proof}, {4 * proof, quick, 4 * proof},
		{4 * proof, quick + 1, 3 * proof}, {5, quick + 1, 0}, {4 * proof, slow, 3 * proof},
		{4 * proof, slow + 1, -longer}, {0, slow + 1, -longer}, {-5, slow + 1, -longer}, {1, time.Hour, -longer},
	} {
		var m method
		m.streak.Store(tt.streak)
		if m.took(tt.took); m.streak.Load() != tt.want {
			t.Errorf("%d and a request of %v: %d, want %d", tt.streak, tt.took, m.streak.Load(), tt.want)
		}
	}
}
