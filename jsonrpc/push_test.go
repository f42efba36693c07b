package jsonrpc_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// pushTransport is a transport that pushes. It records the messages that are written.
type pushTransport struct {
	mu    sync.Mutex
	wrote []string

	to func(message []byte, err error)
}

func (t *pushTransport) Push(to func(message []byte, err error)) { t.to = to }

func (t *pushTransport) Read(context.Context) ([]byte, error) { panic("read") }

func (t *pushTransport) Write(_ context.Context, messages [][]byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range messages {
		t.wrote = append(t.wrote, string(m))
	}
	return nil
}

func (t *pushTransport) Close() error { return nil }

func (t *pushTransport) written() string {
	synctest.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	all := strings.Join(t.wrote, "\n")
	t.wrote = nil
	return all
}

// begin begins a peer. The channel receives the argument of ended.
func begin(p *jsonrpc.Peer) <-chan error {
	ended := make(chan error, 1)
	p.Begin(context.Background(), func(err error) { ended <- err })
	return ended
}

func TestPush(t *testing.T) {
	const (
		request = `{"jsonrpc":"2.0","id":1,"method":"no"}`
		answer  = `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found: no"}}`
	)
	broken := errors.New("broken cable")
	for name, tc := range map[string]struct {
		end  func(*pushTransport, *jsonrpc.Peer)
		want error
	}{
		"the input ends":       {func(tr *pushTransport, _ *jsonrpc.Peer) { tr.to(nil, io.EOF) }, nil},
		"the transport breaks": {func(tr *pushTransport, _ *jsonrpc.Peer) { tr.to(nil, broken) }, broken},
		"Close":                {func(_ *pushTransport, p *jsonrpc.Peer) { _ = p.Close() }, nil},
		"Shutdown":             {func(_ *pushTransport, p *jsonrpc.Peer) { _ = p.Shutdown(context.Background()) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				tr, ends := &pushTransport{}, 0
				p := jsonrpc.NewPeer(tr, nil, &jsonrpc.Options{Hooks: &jsonrpc.Hooks{InputEnd: func(error) { ends++ }}})
				ended := begin(p)
				for range 2 { // the id is free again
					tr.to([]byte(request), nil)
					if diff := cmp.Diff(answer, tr.written()); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
				call := p.Start(context.Background(), "x", nil)
				if diff := cmp.Diff(`{"jsonrpc":"2.0","id":0,"method":"x"}`, tr.written()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				tr.to([]byte(`{"jsonrpc":"2.0","id":0,"result":null}`), nil)
				if err := call.Result(nil); err != nil {
					t.Error(err)
				}
				tc.end(tr, p)
				if err := <-ended; !errors.Is(err, tc.want) || !errors.Is(p.Err(), tc.want) {
					t.Errorf("ended with %v, want %v", err, tc.want)
				}
				tr.to([]byte(request), nil)
				tr.to(nil, io.EOF)
				if got := tr.written(); got != "" || ends != 1 {
					t.Errorf("after the end: %s; the input ended %d times", got, ends)
				}
			})
		})
	}
}

// TestPushOrder checks that a message that is pushed while another one is accepted waits for
// it.
func TestPushOrder(t *testing.T) {
	var order []string
	tr := &pushTransport{}
	second := make(chan struct{})
	h := jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
		if r.Method == "first" {
			go func() {
				defer close(second)
				tr.to([]byte(`{"jsonrpc":"2.0","method":"second"}`), nil)
			}()
			for range 1000 { // a synctest bubble cannot see that a goroutine waits for a mutex
				runtime.Gosched()
			}
		}
		order = append(order, r.Method)
		return nil, nil
	})
	p := jsonrpc.NewPeer(tr, h, &jsonrpc.Options{Inline: []string{"first", "second"}})
	ended := begin(p)
	tr.to([]byte(`{"jsonrpc":"2.0","method":"first"}`), nil)
	<-second
	if diff := cmp.Diff([]string{"first", "second"}, order); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_ = p.Close()
	<-ended
}

// TestIdlePeersHaveNoGoroutines checks that idle peers have no goroutines if their transports
// push.
func TestIdlePeersHaveNoGoroutines(t *testing.T) {
	bubble(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		ctx, cancel := context.WithCancelCause(context.Background())
		const n = 100
		ended := make(chan error, n)
		for range n {
			tr := &pushTransport{}
			p := jsonrpc.NewPeer(tr, nil, nil)
			p.Begin(ctx, func(err error) { ended <- err })
			tr.to([]byte(`{"jsonrpc":"2.0","id":1,"method":"no"}`), nil)
			if err := p.Notify(context.Background(), "n", nil); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if more := runtime.NumGoroutine() - before; more >= n {
			t.Errorf("%d peers have %d goroutines", n, more)
		}
		why := errors.New("signal")
		cancel(why)
		for range n {
			if err := <-ended; !errors.Is(err, why) {
				t.Errorf("ended with %v", err)
			}
		}
	})
}

func TestBeginRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, _ := jsonrpc.Pipe()
		p := jsonrpc.NewPeer(a, nil, nil)
		first := begin(p)
		if err := <-begin(p); err == nil {
			t.Error("began twice")
		}
		_ = p.Close()
		if err := <-first; err != nil {
			t.Error(err)
		}
		b, _ := jsonrpc.Pipe()
		p = jsonrpc.NewPeer(b, nil, nil)
		_ = p.Close()
		if err := <-begin(p); err != nil {
			t.Errorf("after Close: %v", err)
		}
	})
}
