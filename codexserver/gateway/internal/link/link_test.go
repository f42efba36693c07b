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
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/link"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/linktest"
)

// patience bounds each wait. Only a failing test reaches it.
const patience = time.Minute

// nodeOf is a handler that admits requests with the epoch 7.
type nodeOf struct {
	http.HandlerFunc
	held func(ctx context.Context) context.Context // may be nil
}

var errEpoch = errors.New("another epoch")

func (n nodeOf) Admit(ctx context.Context, h *link.Head) (context.Context, func(), error) {
	if h.Epoch != 7 {
		return nil, nil, errEpoch
	}
	if n.held != nil {
		ctx = n.held(ctx)
	}
	return ctx, func() {}, nil
}

// pair is a client and a server.
type pair struct {
	t      *testing.T
	client *link.Client
	server *link.Server
	to     link.Place
	files  link.Certificates
}

func newPair(t *testing.T, h http.HandlerFunc) *pair { return newPairOf(t, nodeOf{h, nil}) }

func newPairOf(t *testing.T, n nodeOf) *pair {
	t.Helper()
	p := &pair{t: t, files: linktest.Certificates(t)}
	p.server = link.NewServer(n, slog.New(slog.DiscardHandler))
	l, address := linktest.Listen(t)
	p.server.Listen(l, p.files)
	p.to = link.Place{ID: p.server.ID(), Address: address}
	p.client = link.NewClient(p.files)
	t.Cleanup(func() {
		p.client.Close()
		p.end()
	})
	return p
}

// end ends the server at once.
func (p *pair) end() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.server.Close(ctx); err != nil {
		p.t.Error(err)
	}
}

// do sends a request with a body.
func (p *pair) do(ctx context.Context, epoch uint64, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/mcp?a=b", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer secret")
	r.Header.Set("Mcp-Name", "kept")
	return p.client.Do(ctx, p.to, link.Head{User: "ann", Sender: "ann", Scopes: []string{"codex:run"}, Epoch: epoch}, r)
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// TestSizes sends bodies of many sizes in both directions.
func TestSizes(t *testing.T) {
	p := newPair(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Mcp-Name") != "kept" || r.URL.RequestURI() != "/mcp?a=b" || link.HeadOf(r.Context()).User != "ann" || len(r.Header) != 1 {
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
	for _, size := range []int{0, 1, 32 << 10, 512 << 10, 512<<10 + 1, 5<<20 + 3} {
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
	t.Parallel()
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
	var slow []*http.Response
	for range 8 { // together more than the window of a connection usually is
		answer, err := p.do(within(t), 7, []byte("slow"))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		slow = append(slow, answer)
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
	<-time.After(6 * time.Second) // a side that is silent would be lost
	mu.Lock()
	if n := written["slow"]; n > 8*17 {
		t.Errorf("the handlers have sent %d parts that the clients have not read, want at most 17 for each", n)
	}
	mu.Unlock()
	for _, answer := range slow {
		if n, err := io.Copy(io.Discard, answer.Body); n != 200*32<<10 || err != nil {
			t.Errorf("a slow client: %d bytes, %v", n, err)
		}
	}
}

// TestSlowUpload checks that handlers that do not read hold up the uploads of others not.
func TestSlowUpload(t *testing.T) {
	free := make(chan struct{})
	began := make(chan struct{}, 16)
	p := newPair(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 1<<20 {
			began <- struct{}{}
			<-free
		}
		_, _ = io.Copy(w, r.Body)
	})
	var waiting sync.WaitGroup
	for range cap(began) {
		waiting.Go(func() {
			answer, err := p.do(within(t), 7, make([]byte, 2<<20))
			if err == nil {
				_, err = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
			if err != nil {
				t.Error(err)
			}
		})
		<-began
	}
	for range 20 {
		answer, err := p.do(within(t), 7, make([]byte, 300<<10))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, answer.Body); n != 300<<10 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		answer.Body.Close()
	}
	close(free)
	waiting.Wait()
}

// relay passes the bytes of connections on, until it is told not to.
type relay struct {
	l       net.Listener
	to      string
	hold    [2]atomic.Bool // to the server, to the client
	held    [2]sync.WaitGroup
	release chan struct{}
	free    func() // closes release
	running sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

func newRelay(t *testing.T, to string) *relay {
	l, _ := linktest.Listen(t)
	r := &relay{l: l, to: to, release: make(chan struct{})}
	r.held[0].Add(1)
	r.held[1].Add(1)
	held := [2]func(){sync.OnceFunc(r.held[0].Done), sync.OnceFunc(r.held[1].Done)}
	r.free = sync.OnceFunc(func() { close(r.release) })
	r.running.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", r.to)
			if err != nil {
				in.Close()
				continue
			}
			r.mu.Lock()
			r.conns = append(r.conns, in, out)
			r.mu.Unlock()
			for i, from := range []net.Conn{in, out} {
				r.running.Go(func() {
					b := make([]byte, 64<<10)
					for {
						n, err := from.Read(b)
						if r.hold[i].Load() {
							held[i]()
							<-r.release
						}
						if _, failed := []net.Conn{out, in}[i].Write(b[:n]); err != nil || failed != nil {
							in.Close()
							out.Close()
							return
						}
					}
				})
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		r.cut()
		r.free()
		r.running.Wait()
	})
	return r
}

// cut ends all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		c.Close()
	}
}

// leave ends the first connection for the client, and the server does not know.
func (r *relay) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns[0].Close()
}

// TestCancel checks that the request ends when the client leaves, and both sides when they do not hear each other any
// more, in each direction.
func TestCancel(t *testing.T) {
	for name, leave := range map[string]func(*relay, context.CancelFunc){
		"the client leaves":        func(_ *relay, cancel context.CancelFunc) { cancel() },
		"the connection is cut":    func(r *relay, _ context.CancelFunc) { r.cut() },
		"the node hears nothing":   func(r *relay, _ context.CancelFunc) { r.hold[0].Store(true) },
		"the front hears nothing":  func(r *relay, _ context.CancelFunc) { r.hold[1].Store(true) },
		"nobody hears anything":    func(r *relay, _ context.CancelFunc) { r.hold[0].Store(true); r.hold[1].Store(true) },
		"they are silent for long": nil,
	} {
		for _, begun := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", with the head: ", begun), func(t *testing.T) {
				t.Parallel()
				began, ended := make(chan struct{}), make(chan struct{})
				go_on := make(chan struct{})
				p := newPair(t, func(w http.ResponseWriter, r *http.Request) {
					defer close(ended)
					if begun {
						_, _ = io.WriteString(w, "begun")
						_ = http.NewResponseController(w).Flush()
					}
					close(began)
					select {
					case <-r.Context().Done():
					case <-go_on:
					}
				})
				relay := newRelay(t, p.to.Address)
				p.to.Address = relay.l.Addr().String()
				ctx, cancel := context.WithCancel(within(t))
				defer cancel()
				failed := make(chan error, 1)
				go func() {
					answer, err := p.do(ctx, 7, nil)
					if err == nil {
						_, err = io.ReadAll(answer.Body)
						answer.Body.Close()
					}
					failed <- err
				}()
				<-began
				if leave == nil {
					<-time.After(8 * time.Second)
					close(go_on)
					<-ended
					if err := <-failed; err != nil {
						t.Error(err)
					}
					return
				}
				leave(relay, cancel)
				at := time.Now()
				if err := <-failed; err == nil || errors.Is(err, link.ErrAbsent) || errors.Is(err, link.ErrRefused) {
					t.Errorf("the client gets %v", err)
				}
				select {
				case <-ended:
				case <-time.After(patience):
					t.Fatal("the request goes on")
				}
				if took := time.Since(at); took > 20*time.Second { // far above three heartbeats
					t.Errorf("it took %v", took)
				}
			})
		}
	}
}

// TestLate holds up a request on its way. The client has an error before it arrives, and it is not carried out.
func TestLate(t *testing.T) {
	t.Parallel()
	var carried atomic.Int32
	p := newPair(t, func(http.ResponseWriter, *http.Request) { carried.Add(1) })
	relay := newRelay(t, p.to.Address)
	p.to.Address = relay.l.Addr().String()
	answer, err := p.do(within(t), 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	relay.hold[0].Store(true)
	relay.hold[1].Store(true)
	lost := make(chan error)
	go func() {
		_, err := p.do(within(t), 7, nil)
		lost <- err
	}()
	relay.held[0].Wait()
	relay.leave()
	if err := <-lost; !errors.Is(err, link.ErrLost) {
		t.Errorf("a request that is held up: %v", err)
	}
	relay.free()
	relay.hold[0].Store(false)
	relay.hold[1].Store(false)
	if answer, err = p.do(within(t), 7, nil); err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	p.end()
	if n := carried.Load(); n != 2 {
		t.Errorf("%d requests were carried out, want two", n)
	}
}

// TestOnce cuts the connection of requests that have begun. Nothing sends them again, whatever their clients say.
func TestOnce(t *testing.T) {
	t.Parallel()
	var carried atomic.Int32
	var relay *relay
	p := newPair(t, func(_ http.ResponseWriter, r *http.Request) {
		if carried.Add(1); r.Header.Get("Cut") != "" {
			relay.cut()
			<-r.Context().Done()
		}
	})
	relay = newRelay(t, p.to.Address)
	p.to.Address = relay.l.Addr().String()
	for i, method := range []string{http.MethodGet, http.MethodPost, http.MethodHead, http.MethodPut} {
		for _, cut := range []string{"", "now"} { // the first one makes a connection that is used again
			r, err := http.NewRequestWithContext(within(t), method, "/mcp", strings.NewReader(map[bool]string{true: "body"}[i%2 == 1]))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Idempotency-Key", "x")
			r.Header.Set("X-Idempotency-Key", "x")
			r.Header.Set("Cut", cut)
			before := carried.Load()
			answer, err := p.client.Do(r.Context(), p.to, link.Head{Epoch: 7}, r)
			if err == nil {
				answer.Body.Close()
			}
			if cut != "" && !errors.Is(err, link.ErrLost) || cut == "" && err != nil {
				t.Errorf("%s, cut %q: %v", method, cut, err)
			}
			if n := carried.Load() - before; n != 1 {
				t.Errorf("%s, cut %q: carried out %d times", method, cut, n)
			}
		}
	}
}

// TestServerGone checks what a client learns when no server is there, and when it ends.
func TestServerGone(t *testing.T) {
	t.Parallel()
	began := make(chan struct{}, 1)
	p := newPair(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		began <- struct{}{}
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // as the proxy to a worker does
	})
	l, closed := linktest.Listen(t)
	l.Close()
	silent, full := linktest.Listen(t) // it accepts, and says nothing
	defer silent.Close()
	r, err := http.NewRequestWithContext(within(t), http.MethodGet, "/mcp", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []link.Place{
		{}, {ID: p.to.ID}, {ID: p.to.ID, Address: closed}, {ID: p.to.ID, Address: full}, {ID: "another process", Address: p.to.Address}, {ID: p.to.ID, Address: "a\x00b:1"}, {ID: p.to.ID, Address: "127.0.0.1:x/y@z"},
	} {
		if _, err := p.client.Do(within(t), to, link.Head{Epoch: 7}, r); !errors.Is(err, link.ErrAbsent) {
			t.Errorf("the server %q: %v", to, err)
		}
	}
	answer, err := p.do(within(t), 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	<-began
	p.end()
	if _, err := io.ReadAll(answer.Body); err == nil {
		t.Error("the answer of a server that has ended is complete")
	}
	answer.Body.Close()
	if _, err := p.do(within(t), 7, nil); !errors.Is(err, link.ErrAbsent) {
		t.Errorf("a server that has ended: %v", err)
	}
}

// TestRefused checks that a request with another epoch is not carried out, and that a broken
// answer is not taken for a whole one.
func TestRefused(t *testing.T) {
	carried := 0
	p := newPair(t, func(w http.ResponseWriter, _ *http.Request) {
		carried++
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
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
	if text, err := io.ReadAll(answer.Body); string(text) != "half" || err == nil {
		t.Errorf("%q, %v", text, err)
	}
}

// TestLeaseLost ends the context of Admit while a client does not read. The exchange ends with an error, over the
// network and in the process.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	lose := make(chan context.CancelFunc, 2)
	ended := make(chan error, 1)
	p := newPairOf(t, nodeOf{func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				ended <- err
				panic(http.ErrAbortHandler)
			}
		}
	}, func(ctx context.Context) context.Context {
		ctx, cancel := context.WithCancel(ctx)
		lose <- cancel
		return ctx
	}})
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = p.server.Do(w, r, link.Head{Epoch: 7}) // it panics
	}))
	defer inside.Close()
	for name, ask := range map[string]func() (*http.Response, error){
		"the network": func() (*http.Response, error) { return p.do(within(t), 7, nil) },
		"the process": func() (*http.Response, error) { return http.Get(inside.URL) },
	} {
		answer, err := ask()
		if err != nil {
			t.Fatal(err)
		}
		(<-lose)()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatalf("%s: the handler waits for the client", name)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err == nil {
			t.Errorf("%s: the answer is complete", name)
		}
		answer.Body.Close()
	}
}

// TestManyExchanges opens as many exchanges as a server has. Further ones are refused, until there is
// room again.
func TestManyExchanges(t *testing.T) {
	const most = 16384
	began, end := make(chan struct{}, most), make(chan struct{})
	p := newPair(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			began <- struct{}{}
			<-end
		}
	})
	send := func(path string) error {
		return p.server.Do(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil), link.Head{Epoch: 7})
	}
	var open sync.WaitGroup
	for range most {
		open.Go(func() {
			if err := send("/hold"); err != nil {
				t.Error(err)
			}
		})
	}
	for range most {
		<-began
	}
	if _, err := p.do(within(t), 7, nil); !errors.Is(err, link.ErrRefused) || !strings.Contains(fmt.Sprint(err), "too many") {
		t.Errorf("one more: %v", err)
	}
	if err := send("/"); !errors.Is(err, link.ErrRefused) {
		t.Errorf("one more in the process: %v", err)
	}
	close(end)
	open.Wait()
	if err := send("/"); err != nil {
		t.Errorf("the server is full for ever: %v", err)
	}
}
