package wsrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/jsonrpc/wsrpc"
)

type text struct {
	Text string `json:"text"`
}

// serve starts a server that runs a peer for each connection. It sends the results of Run to
// ended.
func serve(o *jsonrpc.Options, ended chan<- error) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			ended <- err
			return
		}
		m := new(jsonrpc.Mux)
		jsonrpc.Handle(m, "echo", func(_ context.Context, p text) (text, error) { return p, nil })
		m.Handle("back", jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
			var s string
			return &s, r.Peer().Call(ctx, "name", nil, &s)
		}))
		ended <- jsonrpc.NewPeer(wsrpc.New(c), m, o).Run(r.Context())
	}))
}

func dial(t *testing.T, url string) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.Dial(context.Background(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPeers(t *testing.T) {
	ended := make(chan error, 1)
	s := serve(nil, ended)
	defer s.Close()
	m := new(jsonrpc.Mux)
	jsonrpc.Handle(m, "name", func(context.Context, struct{}) (string, error) { return "client", nil })
	p := jsonrpc.NewPeer(wsrpc.New(dial(t, s.URL)), m, nil)
	ran := make(chan error, 1)
	go func() { ran <- p.Run(context.Background()) }()
	for _, n := range []int{1, 100_000} { // beyond the package's default limit of 32 KiB
		want := text{strings.Repeat("x", n)}
		var got text
		if err := p.Call(context.Background(), "echo", want, &got); err != nil || got != want {
			t.Errorf("echo of %d bytes: %v", n, err)
		}
	}
	var name string
	if err := p.Call(context.Background(), "back", nil, &name); err != nil || name != "client" {
		t.Errorf("got %q, %v", name, err)
	}
	if err := errors.Join(p.Close(), <-ran, <-ended); err != nil {
		t.Error(err)
	}
}

func TestFrames(t *testing.T) {
	ctx := context.Background()
	ended := make(chan error, 1)
	s := serve(&jsonrpc.Options{MaxMessage: 100}, ended)
	defer s.Close()

	c := dial(t, s.URL)
	for kind, want := range map[websocket.MessageType]string{
		websocket.MessageBinary: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a message is a text frame"}}`,
		websocket.MessageText:   `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not valid JSON at byte 0"}}`,
	} {
		if err := c.Write(ctx, kind, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, got, err := c.Read(ctx); err != nil || string(got) != want {
			t.Errorf("got %s, %v", got, err)
		}
	}
	if err := c.Write(ctx, websocket.MessageText, make([]byte, 200)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Read(ctx); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("after a long message: %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("a long message did not end the connection")
	}

	c = dial(t, s.URL)
	if err := c.CloseNow(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("Run returned nil for a broken connection")
	}
}

// TestTransport checks the ends of a transport by itself: how its input ends, that a write that fails
// says so, and that it can be closed after the other side has gone.
func TestTransport(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(*websocket.Conn) error
		want error
	}{
		"closed":     {func(c *websocket.Conn) error { return c.Close(websocket.StatusNormalClosure, "") }, io.EOF},
		"going away": {func(c *websocket.Conn) error { return c.Close(websocket.StatusGoingAway, "") }, io.EOF},
		"cut":        {func(c *websocket.Conn) error { return c.CloseNow() }, io.ErrUnexpectedEOF},
		"refused":    {func(c *websocket.Conn) error { return c.Close(websocket.StatusPolicyViolation, "") }, nil},
	} {
		accepted := make(chan *websocket.Conn, 1)
		ended := make(chan struct{})
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := websocket.Accept(w, r, nil)
			if err != nil {
				t.Error(err)
			}
			accepted <- c
			<-ended
		}))
		tr := wsrpc.New(dial(t, s.URL))
		theirs := <-accepted
		go func() { _ = tt.end(theirs) }() // a close waits for the answer of Read
		msg, err := tr.Read(t.Context())
		if msg != nil || err == nil || tt.want != nil && !errors.Is(err, tt.want) || tt.want == nil && errors.Is(err, io.EOF) {
			t.Errorf("%s: the input ended with %q, %v", name, msg, err)
		}
		for range 2 {
			if err := tr.Close(); err != nil {
				t.Errorf("%s: close: %v", name, err)
			}
		}
		for _, n := range []int{1, 9 << 20} {
			if err := tr.Write(t.Context(), [][]byte{make([]byte, n), []byte("{}")}); err == nil {
				t.Errorf("%s: %d bytes were written to a closed connection", name, n)
			}
		}
		close(ended)
		s.Close()
	}
}

func Example() {
	ctx := context.Background()
	ended := make(chan error, 1)
	s := serve(nil, ended)
	defer s.Close()

	conn, _, err := websocket.Dial(ctx, s.URL, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	p := jsonrpc.NewPeer(wsrpc.New(conn), nil, nil)
	go func() { _ = p.Run(ctx) }()
	var got text
	err = p.Call(ctx, "echo", text{"hello"}, &got)
	fmt.Println(got.Text, err)
	fmt.Println(p.Shutdown(ctx), <-ended)
	// Output:
	// hello <nil>
	// <nil> <nil>
}
