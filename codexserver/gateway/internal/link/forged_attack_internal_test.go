package link

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/broker"
	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
)

// forger is a server, a client, and somebody else with the same account of NATS.
type forger struct {
	*nats.Conn
	t      *testing.T
	server *Server
	client *Client
	id     string         // of the forger as a client
	heard  chan *nats.Msg // what the server sends to the forger
	number uint64         // of the last request
}

func newForger(t *testing.T, every time.Duration, h http.HandlerFunc) *forger {
	t.Helper()
	b, err := broker.Connect(broker.Options{Folder: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	f := &forger{Conn: b.Conn, t: t, id: rand.Text(), heard: make(chan *nats.Msg, 1<<16)}
	o := &Options{Heartbeat: every}
	if f.server, err = NewServer(b.Conn, everyone{h}, slog.New(slog.DiscardHandler), o); err != nil {
		t.Fatal(err)
	}
	if f.client, err = NewClient(b.Conn, o); err != nil {
		t.Fatal(err)
	}
	if _, err = b.Conn.ChanSubscribe(clientSubject(f.id, "*"), f.heard); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range []error{f.client.Close(), f.server.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return f
}

// begin sends the head of a request, and returns where further frames go.
func (f *forger) begin(h Head) (subject string) {
	f.t.Helper()
	f.number++
	h.Client, h.Number = f.id, f.number
	payload, err := json.Marshal(h)
	if err != nil {
		f.t.Fatal(err)
	}
	subject = serverSubject(f.server.id, rand.Text())
	f.publish(subject, frame{kindHead, 0, payload}.append(nil))
	return subject
}

func (f *forger) publish(subject string, data []byte) {
	f.t.Helper()
	if err := f.Publish(subject, data); err != nil {
		f.t.Fatal(err)
	}
}

// works checks that a request of the client is carried out.
func (f *forger) works(after string) {
	f.t.Helper()
	if text, err := f.send("/"); err != nil || text != "answer" {
		f.t.Errorf("after %s: %q, %v", after, text, err)
	}
}

func (f *forger) send(path string) (string, error) {
	ctx, cancel := context.WithTimeout(f.t.Context(), forgerPatience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
	if err != nil {
		return "", err
	}
	answer, err := f.client.Do(ctx, f.server.ID(), Head{}, r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

func say(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") }

// TestForgedHeads sends requests with members that no front sends. Each is refused or carried out as
// what it says, and others go on.
func TestForgedHeads(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	f := newForger(t, time.Second, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			mu.Lock()
			seen = append(seen, r.URL.Host+" "+r.URL.Path)
			mu.Unlock()
			_, _ = io.Copy(io.Discard, r.Body)
		}
		say(w, r)
	})
	for name, tt := range map[string]struct {
		head Head
		ok   bool
	}{
		"nothing":                  {Head{}, false},
		"an address elsewhere":     {Head{Method: "GET", URL: "http://example.com/x"}, false},
		"a path that is none":      {Head{Method: "GET", URL: "*"}, false},
		"a NUL":                    {Head{Method: "GET", URL: "/\x00"}, false},
		"a line break":             {Head{Method: "GET", URL: "/x HTTP/1.1\r\nHost: y"}, false},
		"a length below zero":      {Head{Method: "GET", URL: "/x", Length: -1}, false},
		"two slashes are no host":  {Head{Method: "GET", URL: "//example.com/x"}, true},
		"a header that breaks out": {Head{Method: "GET", URL: "/x", Header: http.Header{"A\r\nB": {"c\r\nd"}}}, true},
		"users of NATS subjects":   {Head{Method: "GET", URL: "/x", User: "*.>", Sender: strings.Repeat("x", 10000)}, true},
		"the largest numbers":      {Head{Method: "GET", URL: "/x", Epoch: 1<<64 - 1}, true},
	} {
		f.begin(tt.head)
		select {
		case m := <-f.heard:
			got, err := parseFrame(m.Data)
			if want := map[bool]kind{true: kindHead, false: kindRefuse}[tt.ok]; err != nil || got.kind != want {
				t.Errorf("%s: %c %s, %v", name, got.kind, got.payload, err)
			}
		case <-time.After(forgerPatience):
			t.Fatalf("%s: no answer", name)
		}
		for end := false; tt.ok && !end; { // the rest of the answer
			got, err := parseFrame((<-f.heard).Data)
			end = err == nil && got.kind == kindEnd
		}
		f.works(name)
	}
	for name, data := range map[string][]byte{
		"a head that is too long":     frame{kindHead, 0, []byte(`{"user":"` + strings.Repeat("x", maxHead) + `"}`)}.append(nil),
		"a head that is too deep":     frame{kindHead, 0, []byte(`{"header":` + strings.Repeat("[", 100000))}.append(nil),
		"a member twice":              frame{kindHead, 0, []byte(`{"user":"ann","user":"bob","client":"` + f.id + `","number":99,"method":"GET","url":"/x"}`)}.append(nil),
		"a member in capital letters": frame{kindHead, 0, []byte(`{"User":"ann","client":"` + f.id + `","number":99,"method":"GET","url":"/x"}`)}.append(nil),
		"a client that is a subject":  frame{kindHead, 0, []byte(`{"client":"*.>","number":1,"method":"GET","url":"/x"}`)}.append(nil),
		"the largest message":         make([]byte, f.MaxPayload()),
		"an ack without a request":    frame{kindAck, 0, make([]byte, 8)}.append(nil),
	} {
		mu.Lock()
		before := len(seen)
		mu.Unlock()
		f.publish(serverSubject(f.server.id, rand.Text()), data)
		f.works(name)
		mu.Lock()
		if len(seen) != before {
			t.Errorf("%s is carried out: %q", name, seen[before:])
		}
		mu.Unlock()
	}
	for _, subject := range []string{"codexmcp.node." + f.server.id + ".http", "codexmcp.node." + f.server.id + ".http.a.b", "codexmcp.node." + f.server.id + ".http." + strings.Repeat("x", 2000), "codexmcp.node..http.x"} {
		_ = f.Publish(subject, frame{kindHead, 0, []byte(`{"client":"` + f.id + `","number":999,"method":"GET","url":"/x"}`)}.append(nil)) // some are refused by the client
		f.works(subject[:min(len(subject), 80)])
	}
	mu.Lock()
	defer mu.Unlock()
	for _, s := range seen {
		if s != " /x" && s != " //example.com/x" {
			t.Errorf("a request for %q", s)
		}
	}
}

// TestReplayedExchange sends all frames of an exchange again, to both sides. Nothing is carried out.
func TestReplayedExchange(t *testing.T) {
	var carried atomic.Int32
	f := newForger(t, time.Second, func(w http.ResponseWriter, r *http.Request) {
		carried.Add(1)
		say(w, r)
	})
	frames := make(chan *nats.Msg, 1000)
	sub, err := f.ChanSubscribe(prefix+">", frames)
	if err != nil {
		t.Fatal(err)
	}
	f.works("nothing")
	if err := sub.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	var recorded []*nats.Msg
	for len(frames) > 0 {
		recorded = append(recorded, <-frames)
	}
	if len(recorded) < 4 { // two heads, two ends
		t.Fatalf("%d frames", len(recorded))
	}
	before := carried.Load()
	for _, m := range recorded {
		f.publish(m.Subject, m.Data)
	}
	f.works("a replay")
	if got := carried.Load(); got != before+1 {
		t.Errorf("%d requests were carried out, want one", got-before)
	}
}

// TestNeverAcks lets a client never acknowledge, and another one send nothing after the head. The
// handler of each waits alone, and ends when its client is silent.
func TestNeverAcks(t *testing.T) {
	const every = 400 * time.Millisecond
	var written atomic.Int32
	ended := make(chan error, 2)
	f := newForger(t, every, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/flood":
			for {
				if _, err := w.Write(make([]byte, maxChunk)); err != nil {
					ended <- err
					return
				}
				written.Add(1)
			}
		case "/upload":
			_, err := io.Copy(io.Discard, r.Body)
			ended <- err
			return
		}
		say(w, r)
	})
	subjects := []string{f.begin(Head{Method: "GET", URL: "/flood"}), f.begin(Head{Method: "POST", URL: "/upload", Length: 1 << 40})}
	silent := make(chan struct{})
	var living sync.WaitGroup
	living.Go(func() { // it lives, and never acknowledges
		for number := uint64(1); ; number++ {
			for _, subject := range subjects {
				_ = f.Publish(subject, frame{kindAlive, number, nil}.append(nil)) // an error ends the exchange
			}
			select {
			case <-time.After(every / 5):
			case <-silent:
				return
			}
		}
	})
	for begun := time.Now(); written.Load() < window || time.Since(begun) < 5*every; <-time.After(every / 5) { // longer than a side may be silent
		f.works("a client that lives")
		if time.Since(begun) > forgerPatience {
			t.Fatalf("%d parts were written", written.Load())
		}
	}
	if n := written.Load(); n != window {
		t.Errorf("%d parts were written, want %d", n, window)
	}
	if len(ended) > 0 {
		t.Errorf("a request ended early: %v", <-ended)
	}
	close(silent)
	living.Wait()
	for range 2 { // now it is silent
		select {
		case err := <-ended:
			if err == nil {
				t.Error("a request that was cut off is taken for a whole one")
			}
		case <-time.After(forgerPatience):
			t.Fatal("a handler waits for ever")
		}
	}
	f.works("the end")
}

// TestMoreThanTheWindow lets a client send more than it may. Its exchange ends, and no other.
func TestMoreThanTheWindow(t *testing.T) {
	ended := make(chan error, 1)
	stay := make(chan struct{})
	f := newForger(t, time.Second, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/upload" {
			<-stay
			_, err := io.Copy(io.Discard, r.Body)
			ended <- err
			return
		}
		say(w, r)
	})
	subject := f.begin(Head{Method: "POST", URL: "/upload", Length: 1 << 40})
	for number := uint64(1); number < 10*window; number++ {
		f.publish(subject, frame{kindBody, number, make([]byte, maxChunk)}.append(nil))
	}
	f.works("a flood")
	close(stay)
	if err := <-ended; !errors.Is(err, errOverrun) {
		t.Errorf("the flood: %v", err)
	}
}

// TestManyExchanges opens as many exchanges as a server has. Further ones are refused, until there is
// room again.
func TestManyExchanges(t *testing.T) {
	f := newForger(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			<-r.Context().Done()
			return
		}
		say(w, r)
	})
	var open []string
	for range maxExchanges + 100 {
		open = append(open, f.begin(Head{Method: "GET", URL: "/hold"}))
	}
	for refused := 0; refused < 100; {
		select {
		case m := <-f.heard:
			if got, err := parseFrame(m.Data); err == nil && got.kind == kindRefuse {
				refused++
			}
		case <-time.After(forgerPatience):
			t.Fatalf("%d requests are refused, want 100", refused)
		}
	}
	if text, err := f.send("/"); !errors.Is(err, ErrRefused) || !strings.Contains(fmt.Sprint(err), "too many") {
		t.Errorf("%q, %v", text, err)
	}
	for _, subject := range open {
		f.publish(subject, frame{kindCancel, 1, nil}.append(nil))
	}
	for deadline := time.Now().Add(forgerPatience); ; <-time.After(10 * time.Millisecond) {
		if text, err := f.send("/"); err == nil && text == "answer" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the server is full for ever")
		}
	}
}
