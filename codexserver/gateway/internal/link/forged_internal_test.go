package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/broker"
	"github.com/nats-io/nats.go"
)

// forgerPatience bounds each wait. Only a failing test reaches it.
const forgerPatience = time.Minute

// everyone admits all requests.
type everyone struct{ http.HandlerFunc }

func (everyone) Admit(ctx context.Context, _ *Head) (context.Context, error) { return ctx, nil }

// TestForged checks messages that no client and no server would send.
func TestForged(t *testing.T) {
	b, err := broker.Connect(broker.Options{Folder: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	carried := make(chan string, 16)
	release := make(chan struct{}, 1)
	server, err := NewServer(b.Conn, everyone{func(w http.ResponseWriter, r *http.Request) {
		carried <- r.URL.Path
		if r.URL.Path == "/wait" {
			<-release
		}
		_, _ = io.WriteString(w, "answer")
	}}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	defer func() { // a failed test leaves handlers that wait
		for range cap(carried) {
			select {
			case release <- struct{}{}:
			default:
			}
		}
	}()
	client, err := NewClient(b.Conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	seen := make(chan *nats.Msg, 64)
	sub, err := b.Conn.ChanSubscribe(prefix+">", seen)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	ctx, cancel := context.WithTimeout(t.Context(), forgerPatience)
	defer cancel()
	send := func(path string) (string, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, path, http.NoBody)
		if err != nil {
			return "", err
		}
		answer, err := client.Do(ctx, server.ID(), Head{}, r)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return string(text), err
	}
	// A request that is sent again is not carried out again, under its id or another one.
	if got, err := send("/once"); got != "answer" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	<-carried
	head := <-seen
	other := serverSubject(server.ID(), strings.Repeat("A", 26))
	for _, to := range []string{head.Subject, other} {
		if err := b.Conn.Publish(to, head.Data); err != nil {
			t.Fatal(err)
		}
	}
	// Nothing of this is a request.
	for _, data := range [][]byte{nil, []byte("H"), frame{kindHead, 0, []byte("{}")}.append(nil), frame{kindHead, 0, []byte(`{"client":"` + strings.Repeat("A", 26) + `","more":1}`)}.append(nil),
		frame{kindHead, 1, head.Data[frameHeader:]}.append(nil), frame{'Z', 0, nil}.append(nil), frame{kindHead, 0, []byte(`{"client":"a.b","number":9}`)}.append(nil)} {
		if err := b.Conn.Publish(serverSubject(server.ID(), strings.Repeat("B", 26)), data); err != nil {
			t.Fatal(err)
		}
	}
	// A message for an exchange that does not exist changes nothing for the others.
	type result struct {
		text string
		err  error
	}
	for name, tt := range map[string]struct {
		forge func(exchange string) (subject string, data []byte)
		want  error // nil means the right answer
	}{
		"an answer for another exchange": {func(string) (string, []byte) {
			return clientSubject(client.id, strings.Repeat("C", 26)), frame{kindHead, 0, []byte(`{"status":200}`)}.append(nil)
		}, nil},
		"an answer for another front": {func(x string) (string, []byte) {
			return clientSubject(strings.Repeat("C", 26), x), frame{kindHead, 0, []byte(`{"status":200}`)}.append(nil)
		}, nil},
		"a gap in the answer": {func(x string) (string, []byte) {
			return clientSubject(client.id, x), frame{kindBody, 5, []byte("x")}.append(nil)
		}, ErrGap},
		"a gap in the request": {func(x string) (string, []byte) {
			return serverSubject(server.id, x), frame{kindAlive, 9, nil}.append(nil)
		}, nil},
		"a body that is too long": {func(x string) (string, []byte) {
			return clientSubject(client.id, x), frame{kindBody, 0, make([]byte, maxChunk+1)}.append(nil)
		}, errFrame},
		"an acknowledgement of too much": {func(x string) (string, []byte) {
			return clientSubject(client.id, x), frame{kindAck, 0, []byte("\xff\xff\xff\xff\xff\xff\xff\xff")}.append(nil)
		}, errOverrun},
		"a head with another status": {func(x string) (string, []byte) {
			return clientSubject(client.id, x), frame{kindHead, 0, []byte(`{"status":101}`)}.append(nil)
		}, errors.ErrUnsupported},
		"a head that is not JSON": {func(x string) (string, []byte) {
			return clientSubject(client.id, x), frame{kindHead, 0, []byte(`x`)}.append(nil)
		}, errors.ErrUnsupported},
		"a body before the head": {func(x string) (string, []byte) {
			return clientSubject(client.id, x), frame{kindBody, 0, []byte("x")}.append(nil)
		}, errFrame},
		"a message that is no frame": {func(x string) (string, []byte) { return clientSubject(client.id, x), []byte("x") }, errFrame},
		"an end instead of the answer": {func(x string) (string, []byte) {
			return clientSubject(client.id, x), frame{kindEnd, 0, nil}.append(nil)
		}, ErrLost},
		"a refusal that names the reason": {func(x string) (string, []byte) {
			return clientSubject(client.id, x), frame{kindRefuse, 0, []byte("why")}.append(nil)
		}, ErrRefused},
	} {
		got := make(chan result, 1)
		go func() {
			text, err := send("/wait")
			got <- result{text, err}
		}()
		if path := <-carried; path != "/wait" {
			t.Fatalf("a message that is no request was carried out: %s", path)
		}
		exchange := client.ends.all()[0].exchange
		to, data := tt.forge(exchange)
		if err := b.Conn.Publish(to, data); err != nil {
			t.Fatal(err)
		}
		if err := b.Conn.Flush(); err != nil {
			t.Fatal(err)
		}
		if name == "a gap in the request" { // the server must have seen it
			<-server.ends.find(exchange).done
		}
		if tt.want == nil {
			release <- struct{}{}
		}
		r := <-got
		switch {
		case name == "a gap in the request":
			if r.err == nil {
				t.Errorf("%s: %+v", name, r)
			}
		case tt.want == nil && (r.text != "answer" || r.err != nil), tt.want != nil && r.err == nil, tt.want != nil && tt.want != errors.ErrUnsupported && !errors.Is(r.err, tt.want):
			t.Errorf("%s: %+v, want %v", name, r, tt.want)
		}
		if tt.want != nil {
			release <- struct{}{}
		}
		if err := server.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if len(carried) > 0 {
		t.Errorf("%d requests were carried out twice", len(carried))
	}
}

// TestClients checks which numbers of requests are new.
func TestClients(t *testing.T) {
	var c clients
	for i, tt := range []struct {
		id     string
		number uint64
		want   bool
	}{{"a", 0, false}, {"a", 1, true}, {"a", 1, false}, {"b", 1, true}, {"a", 5, true}, {"a", 4, false}, {"b", 2, true}} {
		if got := c.fresh(tt.id, tt.number); got != tt.want {
			t.Errorf("%d: %v", i, got)
		}
	}
	for i := range 2 * maxClients {
		c.fresh(fmt.Sprint(i), 1)
	}
	if len(c.latest) > maxClients || len(c.order) != len(c.latest) {
		t.Errorf("%d clients, %d in order", len(c.latest), len(c.order))
	}
}

// FuzzFrame checks that a frame that is parsed is written as it was, and keeps the bounds.
func FuzzFrame(f *testing.F) {
	f.Add(frame{kindHead, 0, []byte("{}")}.append(nil))
	f.Add(frame{kindAck, 3, make([]byte, 8)}.append(nil))
	f.Add([]byte("B"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parseFrame(data)
		if err != nil {
			return
		}
		if string(got.append(nil)) != string(data) || len(got.payload) > maxHead {
			t.Errorf("%q becomes %+v", data, got)
		}
		e := newEnd("x", time.Now(), func([]byte) error { return nil })
		e.receive(data, time.Now())
	})
}

// TestFrameSizes reads frames of each kind at the ends of their sizes.
func TestFrameSizes(t *testing.T) {
	for k, sizes := range map[kind][2]int{
		kindHead: {0, maxHead}, kindBody: {1, maxChunk}, kindEnd: {0, maxReason}, kindRefuse: {0, maxReason},
		kindAck: {8, 8}, kindAlive: {0, 0}, kindCancel: {0, 0},
	} {
		for _, n := range []int{sizes[0] - 1, sizes[0], sizes[1], sizes[1] + 1} {
			if n < 0 {
				continue
			}
			_, err := parseFrame(frame{kind: k, payload: make([]byte, n)}.append(nil))
			if good := n >= sizes[0] && n <= sizes[1]; good != (err == nil) {
				t.Errorf("kind %d of %d bytes: %v", k, n, err)
			}
		}
	}
	for _, data := range [][]byte{make([]byte, frameHeader-1), append([]byte{255}, make([]byte, frameHeader)...)} {
		if _, err := parseFrame(data); err == nil {
			t.Errorf("%d bytes are a frame", len(data))
		}
	}
}
