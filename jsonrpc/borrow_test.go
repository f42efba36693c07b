package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

// TestBorrowedReading checks that a handler that the reader runs reads the answers to its own
// calls, and that its calls still return when their contexts end, and others get their answers.
func TestBorrowedReading(t *testing.T) {
	var work func(context.Context, *Peer) error
	client, server := overPipes(t, Lines, func(ctx context.Context, r *Request) (any, error) {
		return nil, work(ctx, r.Peer())
	})
	asked := make(chan struct{}, 1)
	client.h.(*Mux).Handle("silence", HandlerFunc(func(ctx context.Context, _ *Request) (any, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return nil, nil
	}))
	x := func() error { return client.Call(t.Context(), "x", []int{}, nil) }

	const calls = 20
	handedOver := 0
	for range calls {
		work = func(ctx context.Context, p *Peer) error { return p.Call(ctx, "y", nil, nil) }
		trust(server)
		if err := x(); err != nil {
			t.Fatal(err)
		}
		for server.Stats().Running > 0 {
			runtime.Gosched()
		}
		if server.methods["x"].streak.Load() < 0 {
			handedOver++
		}
	}
	// Once in a while the watch may do it, on a busy machine.
	if handedOver == calls {
		t.Error("the handler's calls were answered by another reader")
	}

	for name, f := range map[string]func(context.Context, *Peer) error{
		"its context ends": func(ctx context.Context, p *Peer) error {
			until, cancel := context.WithCancel(ctx)
			go func() { <-asked; cancel() }()
			if err := p.Call(until, "silence", nil, nil); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("got %w, want context.Canceled", err)
			}
			return p.Call(ctx, "y", nil, nil)
		},
		"several at once": func(ctx context.Context, p *Peer) error {
			var wg sync.WaitGroup
			errs := make([]error, 8)
			for i := range errs {
				wg.Go(func() {
					for range 20 {
						errs[i] = errors.Join(errs[i], p.Call(ctx, "y", nil, nil))
					}
				})
			}
			wg.Wait()
			return errors.Join(errs...)
		},
		"begun before": func(ctx context.Context, p *Peer) error {
			c := p.Start(ctx, "y", nil)
			return errors.Join(p.Call(ctx, "y", nil, nil), c.Result(nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			work = f
			trust(server)
			for range 3 {
				if err := x(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestBorrowedReadingIsLeft checks that reading continues when the handler that has lent it
// returns before a call of a goroutine that it has started.
func TestBorrowedReadingIsLeft(t *testing.T) {
	answer, left := make(chan struct{}), make(chan error, 1)
	client, _ := overPipes(t, Lines, func(ctx context.Context, r *Request) (any, error) {
		if r.Method == "x" {
			began := make(chan struct{})
			go func() {
				close(began)
				left <- r.Peer().Call(context.WithoutCancel(ctx), "wait", nil, nil)
			}()
			<-began
		}
		return nil, nil
	})
	client.h.(*Mux).Handle("wait", HandlerFunc(func(context.Context, *Request) (any, error) { <-answer; return nil, nil }))
	if err := client.Call(t.Context(), "x", []int{}, nil); err != nil {
		t.Error(err)
	}
	for range 2 * proof {
		if err := client.Call(t.Context(), "y", []int{}, nil); err != nil {
			t.Error(err)
		}
	}
	close(answer)
	if err := <-left; err != nil {
		t.Error(err)
	}
	if err := client.Call(t.Context(), "y", []int{}, nil); err != nil {
		t.Error(err)
	}
}

// patient is a transport over a descriptor whose Read cannot be interrupted.
type patient struct {
	Transport
	drainer
}

// TestUninterruptedReadingIsNotBorrowed checks that a call of a handler that the reader runs ends
// with its context, although nothing could end its reading.
func TestUninterruptedReadingIsNotBorrowed(t *testing.T) {
	for name, framing := range map[string]func(io.Reader, io.Writer, io.Closer) Transport{
		"cannot be asked": func(r io.Reader, w io.Writer, c io.Closer) Transport {
			lines := Lines(r, w, c)
			return patient{lines, lines.(drainer)}
		},
		"refuses": func(r io.Reader, w io.Writer, c io.Closer) Transport {
			return Lines(descriptorOnly{r, r.(syscall.Conn)}, w, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{}, 1)
			client, _ := overPipes(t, framing, func(ctx context.Context, r *Request) (any, error) {
				until, cancel := context.WithCancel(ctx)
				go func() { <-asked; cancel() }()
				if err := r.Peer().Call(until, "silence", nil, nil); !errors.Is(err, context.Canceled) {
					return nil, fmt.Errorf("got %w, want context.Canceled", err)
				}
				return nil, r.Peer().Call(ctx, "y", nil, nil)
			})
			client.h.(*Mux).Handle("silence", HandlerFunc(func(ctx context.Context, _ *Request) (any, error) {
				asked <- struct{}{}
				<-ctx.Done()
				return nil, nil
			}))
			if err := client.Call(t.Context(), "x", []int{}, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// descriptorOnly is a reader over a descriptor that has no deadline.
type descriptorOnly struct {
	io.Reader
	syscall.Conn
}

// TestBorrowedReadingEnds checks that a call that reads fails at the end of the connection.
func TestBorrowedReadingEnds(t *testing.T) {
	for name, end := range map[string]func(client, server *Peer) error{
		"of input": func(client, _ *Peer) error { return client.Close() },
		"by Close": func(_, server *Peer) error { return server.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			failed := make(chan error, 1)
			client, server := overPipes(t, Lines, func(ctx context.Context, r *Request) (any, error) {
				failed <- r.Peer().Call(ctx, "wait", nil, nil)
				return nil, nil
			})
			asked := make(chan struct{})
			client.h.(*Mux).Handle("wait", HandlerFunc(func(ctx context.Context, _ *Request) (any, error) {
				close(asked)
				<-ctx.Done()
				return nil, nil
			}))
			c := client.Start(t.Context(), "x", []int{})
			<-asked
			if err := end(client, server); err != nil {
				t.Error(err)
			}
			if err := <-failed; !errors.Is(err, ErrClosed) {
				t.Errorf("the handler's call: %v", err)
			}
			if err := c.Result(nil); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
			<-server.Done()
		})
	}
}

// TestBorrowedReadingIsWatched checks that another goroutine takes the reading when a handler goes on after
// its call, even if the watch has ended during that call.
func TestBorrowedReadingIsWatched(t *testing.T) {
	answered, open := make(chan struct{}), make(chan struct{})
	client, server := overPipes(t, Lines, func(ctx context.Context, r *Request) (any, error) {
		if r.Method == "open" {
			close(open)
			return nil, nil
		}
		err := r.Peer().Call(ctx, "y", nil, nil)
		close(answered)
		<-open
		return nil, err
	})
	client.h.(*Mux).Handle("y", HandlerFunc(func(context.Context, *Request) (any, error) {
		for server.reading.watching.Load() {
			runtime.Gosched()
		}
		return nil, nil
	}))
	c := client.Start(t.Context(), "x", []int{})
	<-answered
	if err := client.Call(t.Context(), "open", nil, nil); err != nil {
		t.Error(err)
	}
	if err := c.Result(nil); err != nil {
		t.Error(err)
	}
}

// TestBorrowedReadingSeesTheEnd checks that a peer ends, and its handler's answer is sent, when a call reads
// that the other side has ended its input.
func TestBorrowedReadingSeesTheEnd(t *testing.T) {
	var out []io.Writer
	framing := func(r io.Reader, w io.Writer, c io.Closer) Transport {
		out = append(out, w)
		return Lines(r, w, c)
	}
	failed := make(chan error, 1)
	client, server := overPipes(t, framing, func(ctx context.Context, r *Request) (any, error) {
		failed <- r.Peer().Call(ctx, "wait", nil, nil)
		return nil, nil
	})
	asked := make(chan struct{})
	client.h.(*Mux).Handle("wait", HandlerFunc(func(ctx context.Context, _ *Request) (any, error) {
		close(asked)
		<-ctx.Done()
		return nil, nil
	}))
	c := client.Start(t.Context(), "x", []int{})
	<-asked
	if err := out[0].(io.Closer).Close(); err != nil { // the client reads on
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, ErrClosed) {
		t.Errorf("the handler's call: %v", err)
	}
	if err := c.Result(nil); err != nil {
		t.Error(err)
	}
	<-server.Done()
	if err := server.Err(); err != nil {
		t.Error(err)
	}
}
