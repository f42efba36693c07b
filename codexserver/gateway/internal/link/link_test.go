package link_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/broker"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/link"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/natstest"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// patience bounds each wait. Only a failing test reaches it.
const patience = time.Minute

// heartbeat is that of the tests. A side is lost after three of them, which a slow machine must not
// need for a frame.
const heartbeat = 500 * time.Millisecond

// nodeOf is a handler that admits requests with the epoch 7.
type nodeOf struct{ http.HandlerFunc }

var errEpoch = errors.New("another epoch")

func (nodeOf) Admit(ctx context.Context, h *link.Head) (context.Context, error) {
	if h.Epoch != 7 {
		return nil, errEpoch
	}
	return ctx, nil
}

// pair is a client and a server on connections of their own to a server in the process.
type pair struct {
	client *link.Client
	server *link.Server
	broker *broker.Broker
}

func newPair(t *testing.T, h http.HandlerFunc) *pair {
	t.Helper()
	b, err := broker.Connect(broker.Options{Folder: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	p := &pair{broker: b}
	o := &link.Options{Heartbeat: heartbeat}
	if p.server, err = link.NewServer(b.Conn, nodeOf{h}, slog.New(slog.DiscardHandler), o); err != nil {
		t.Fatal(err)
	}
	if p.client, err = link.NewClient(b.Conn, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range []error{p.client.Close(), p.server.Close()} {
			if err != nil && !errors.Is(err, nats.ErrBadSubscription) { // a test has closed it
				t.Error(err)
			}
		}
	})
	return p
}

// do sends a request with a body.
func (p *pair) do(ctx context.Context, epoch uint64, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/mcp?a=b", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer secret")
	r.Header.Set("Mcp-Name", "kept")
	return p.client.Do(ctx, p.server.ID(), link.Head{User: "ann", Sender: "ann", Scopes: []string{"codex:run"}, Epoch: epoch}, r)
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// TestSizes sends bodies of many sizes in both directions.
func TestSizes(t *testing.T) {
	p := newPair(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Mcp-Name") != "kept" || r.URL.RequestURI() != "/mcp?a=b" || link.HeadOf(r.Context()).User != "ann" {
			t.Errorf("the head: %v %v", r.URL, r.Header)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || int64(len(body)) != r.ContentLength {
			t.Errorf("the body: %d of %d bytes, %v", len(body), r.ContentLength, err)
		}
		w.Header().Set("Sum", fmt.Sprintf("%x", sha256.Sum256(body)))
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write(body)
	})
	for _, size := range []int{0, 1, 32<<10 - 1, 32 << 10, 32<<10 + 1, 16 * 32 << 10, 17 * 32 << 10, 5<<20 + 3} {
		sent := bytes.Repeat([]byte{'x', 'y', 'z'}, size/3+1)[:size]
		answer, err := p.do(within(t), 7, sent)
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		got, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || !bytes.Equal(got, sent) || answer.StatusCode != http.StatusAccepted || answer.Header.Get("Sum") != fmt.Sprintf("%x", sha256.Sum256(sent)) {
			t.Errorf("%d bytes: %d bytes, %d %v", size, len(got), answer.StatusCode, err)
		}
	}
}

// TestSlowReader checks that a client that does not read holds up the handler of its own
// request only, also for longer than a side may be silent.
func TestSlowReader(t *testing.T) {
	var mu sync.Mutex
	written := map[string]int{}
	p := newPair(t, func(w http.ResponseWriter, r *http.Request) {
		name, _ := io.ReadAll(r.Body)
		part := make([]byte, 32<<10)
		for range 200 {
			if _, err := w.Write(part); err != nil {
				return
			}
			mu.Lock()
			written[string(name)]++
			mu.Unlock()
		}
	})
	slow, err := p.do(within(t), 7, []byte("slow"))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		fast, err := p.do(within(t), 7, []byte("fast"))
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, fast.Body)
		fast.Body.Close()
		if n != 200*32<<10 || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	<-time.After(5 * heartbeat)
	mu.Lock()
	if n := written["slow"]; n > 16 {
		t.Errorf("the handler has sent %d parts that the client has not read, want at most 16", n)
	}
	mu.Unlock()
	n, err := io.Copy(io.Discard, slow.Body)
	slow.Body.Close()
	if n != 200*32<<10 || err != nil {
		t.Errorf("the slow client: %d bytes, %v", n, err)
	}
}

// TestCancel checks that the request ends when the client leaves, or when its side dies.
func TestCancel(t *testing.T) {
	for name, leave := range map[string]func(*pair, context.CancelFunc){
		"the client leaves": func(_ *pair, cancel context.CancelFunc) { cancel() },
		"the front dies":    func(p *pair, _ context.CancelFunc) { link.Mute(p.client) },
	} {
		t.Run(name, func(t *testing.T) {
			began, ended := make(chan struct{}), make(chan struct{})
			p := newPair(t, func(_ http.ResponseWriter, r *http.Request) {
				close(began)
				<-r.Context().Done()
				close(ended)
			})
			ctx, cancel := context.WithCancel(within(t))
			defer cancel()
			failed := make(chan error, 1)
			go func() {
				_, err := p.do(ctx, 7, nil)
				failed <- err
			}()
			<-began
			leave(p, cancel)
			select {
			case <-ended:
			case <-time.After(patience):
				t.Fatal("the request goes on")
			}
			cancel()
			if err := <-failed; err == nil {
				t.Error("the client gets an answer")
			}
		})
	}
}

// TestServerGone checks what a client learns when no server is there, when it ends, and when
// it is silent.
func TestServerGone(t *testing.T) {
	began := make(chan struct{}, 1)
	hold := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		began <- struct{}{}
		<-r.Context().Done()
	}
	p := newPair(t, hold)
	r, err := http.NewRequestWithContext(within(t), http.MethodGet, "/mcp", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{strings.Repeat("A", 26), "", "*", ">", "a.b"} {
		if _, err := p.client.Do(within(t), id, link.Head{}, r); !errors.Is(err, link.ErrAbsent) {
			t.Errorf("the server %q: %v", id, err)
		}
	}
	answer, err := p.do(within(t), 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	<-began
	link.MuteServer(p.server)
	if _, err := io.ReadAll(answer.Body); !errors.Is(err, link.ErrLost) {
		t.Errorf("a silent server: %v", err)
	}
	answer.Body.Close()
	p = newPair(t, hold)
	if answer, err = p.do(within(t), 7, nil); err != nil {
		t.Fatal(err)
	}
	<-began
	if err := p.server.Close(); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(answer.Body); err == nil {
		t.Error("the answer of a server that has ended is complete")
	}
	answer.Body.Close()
}

// dialer dials unless it is cut.
type dialer struct {
	mu   sync.Mutex
	cut  bool
	last net.Conn
}

func (d *dialer) Dial(network, address string) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cut {
		return nil, errors.New("cut")
	}
	conn, err := net.Dial(network, address)
	d.last = conn
	return conn, err
}

func (d *dialer) set(cut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cut = cut; cut {
		d.last.Close()
	}
}

// TestNotSentLater checks that a request which fails because the connection to NATS is broken is not sent
// when the connection is there again.
func TestNotSentLater(t *testing.T) {
	address := natstest.Start(t, natsserver.Options{}).ClientURL()
	var d dialer
	conns := map[bool]*nats.Conn{}
	for cut, options := range map[bool][]nats.Option{false: nil, true: {nats.SetCustomDialer(&d), nats.MaxReconnects(-1), nats.ReconnectWait(10 * time.Millisecond)}} {
		conn, err := nats.Connect(address, options...)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns[cut] = conn
	}
	carried := make(chan string, 10)
	s, err := link.NewServer(conns[false], nodeOf{func(_ http.ResponseWriter, r *http.Request) { carried <- r.Header.Get("Name") }}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := link.NewClient(conns[true], nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	send := func(name string) error {
		r, err := http.NewRequestWithContext(within(t), http.MethodPost, "/mcp", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Name", name)
		answer, err := c.Do(r.Context(), s.ID(), link.Head{Epoch: 7}, r)
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	}
	for _, cut := range []bool{true, false} {
		d.set(cut)
		for conns[true].IsConnected() == cut {
			if within(t).Err() != nil {
				t.Fatal("the connection stays as it is")
			}
			<-time.After(time.Millisecond)
		}
		if cut {
			if err := send("early"); !errors.Is(err, link.ErrRefused) {
				t.Errorf("without a connection: %v", err)
			}
		} else if err := send("later"); err != nil {
			t.Error(err)
		}
	}
	if first := <-carried; first != "later" || len(carried) > 0 {
		t.Errorf("%q was carried out, and %d more", first, len(carried))
	}
}

// TestRefused checks that a request with another epoch is not carried out, and that a broken
// answer is not taken for a whole one.
func TestRefused(t *testing.T) {
	carried := 0
	p := newPair(t, func(w http.ResponseWriter, _ *http.Request) {
		carried++
		_, _ = io.WriteString(w, "half")
		panic(http.ErrAbortHandler)
	})
	if _, err := p.do(within(t), 6, []byte("body")); !errors.Is(err, link.ErrRefused) || !strings.Contains(err.Error(), errEpoch.Error()) || carried != 0 {
		t.Errorf("an older epoch: %v, carried out %d times", err, carried)
	}
	answer, err := p.do(within(t), 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	var incomplete *link.IncompleteError
	if string(text) != "half" || !errors.As(err, &incomplete) {
		t.Errorf("%q, %v", text, err)
	}
}
