package jsonrpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// script is a transport that a test fills. It records the messages that are written.
type script struct {
	lines chan []byte

	mu    sync.Mutex
	wrote []string
}

func (w *script) Read(ctx context.Context) ([]byte, error) {
	select {
	case line := <-w.lines:
		return line, nil
	case <-ctx.Done():
		return nil, io.EOF
	}
}

func (w *script) Write(_ context.Context, messages [][]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range messages {
		w.wrote = append(w.wrote, string(m))
	}
	return nil
}

func (w *script) Close() error { return nil }

func (w *script) written() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	all := strings.Join(w.wrote, "\n")
	w.wrote = nil
	return all
}

// batched is a peer that accepts batches. Requests wait for go of their method.
type batched struct {
	*jsonrpc.Peer
	*script
	accepts atomic.Bool // as it is asked
	gates   map[string]chan struct{}
}

func newBatched(t *testing.T, o *jsonrpc.Options) *batched {
	b := &batched{script: &script{lines: make(chan []byte)}, gates: map[string]chan struct{}{"a": make(chan struct{}, 9), "b": make(chan struct{}, 9)}}
	h := jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		if gate := b.gates[r.Method]; gate != nil {
			select {
			case <-gate:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if r.Method == "ask" {
			var answer json.RawMessage
			err := r.Peer().Call(ctx, "question", nil, &answer)
			return answer, err
		}
		return r.Method, nil
	})
	b.accepts.Store(true)
	o.Cancellation, o.Batches = jsonrpc.MCPCancel, b.accepts.Load
	b.Peer = jsonrpc.NewPeer(b.script, h, o)
	ended := make(chan error, 1)
	go func() { ended <- b.Peer.Run(context.Background()) }()
	t.Cleanup(func() {
		b.Peer.Close()
		<-ended
	})
	return b
}

// Close is the transport's.
func (b *batched) Close() error { return nil }

// put sends a line, and checks what the peer writes.
func (b *batched) put(t *testing.T, line, want string) {
	t.Helper()
	b.lines <- []byte(line)
	if diff := cmp.Diff(want, b.written()); diff != "" {
		t.Errorf("%.200s (-want +got):\n%s", line, diff)
	}
}

func call(id, method string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"}`
}

func TestBatches(t *testing.T) {
	const (
		note     = `{"jsonrpc":"2.0","method":"n"}`
		refused  = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches are not accepted"}}`
		noObject = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a message is an object"}}`
	)
	result := func(id, of string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":"` + of + `"}` }
	invalid := func(id, why string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32600,"message":"` + why + `"}}`
	}
	bubble(t, func(t *testing.T) {
		b := newBatched(t, &jsonrpc.Options{Inline: jsonrpc.Methods("now")})
		b.accepts.Store(false)
		b.put(t, "["+call("1", "x")+"]", refused)
		b.accepts.Store(true)
		for _, tt := range []struct{ line, want string }{
			{"[" + call("1", "now") + "]", "[" + result("1", "now") + "]"},
			{"[" + call("1", "],[") + "]", "[" + result("1", "],[") + "]"},
			{"[]", invalid("null", "the batch is empty")},
			{" [ \t] ", invalid("null", "the batch is empty")},
			{"[1,2]", "[" + noObject + "," + noObject + "]"},
			{"[" + note + "," + note + "]", ""},
			{`[{"jsonrpc":"2.0","id":9,"result":1}]`, ""}, // of no call
			{" [ " + call("1", "now") + " , " + note + " , " + call(`"1"`, "now") + "\t]\r", "[" + result("1", "now") + "," + result(`"1"`, "now") + "]"},
			{"[" + call("1", "now") + "," + call("1", "now") + "]", "[" + result("1", "now") + "," + invalid("1", "id 1 occurs twice in the batch") + "]"},
			{"[[" + call("1", "now") + "]]", "[" + refused + "]"},
			{"[" + call("1", "now") + `,{"id":2,"id":2},{"jsonrpc":"2.0","id":3,"method":3}]`,
				"[" + result("1", "now") + "," + invalid("null", `member \"id\" occurs twice`) + "," + invalid("3", "method is not a string") + "]"},
			{"[" + call("1", "now") + ",", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not valid JSON at byte 41"}}`},
			{"[" + strings.Repeat("1,", 256) + "1]", invalid("null", "the batch has more than 256 messages")},
			{call("1", "now"), result("1", "now")},
		} {
			b.put(t, tt.line, tt.want)
		}
		if got := b.Stats(); got.Running != 0 || got.Waiting != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// TestBatchWaits sends the answers of a batch when the last is there. Another message does not
// wait for that.
func TestBatchWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBatched(t, &jsonrpc.Options{})
		b.put(t, "["+call("1", "a")+","+call("2", "b")+","+call("3", "c")+"]", "")
		b.put(t, call("4", "d"), `{"jsonrpc":"2.0","id":4,"result":"d"}`)
		b.put(t, call("1", "d"), `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"id 1 is already in use"}}`)
		b.put(t, "["+call("1", "d")+"]", `[{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"id 1 is already in use"}}]`)
		b.gates["b"] <- struct{}{}
		b.put(t, call("5", "d"), `{"jsonrpc":"2.0","id":5,"result":"d"}`)
		b.gates["a"] <- struct{}{}
		if got := b.written(); got != `[{"jsonrpc":"2.0","id":3,"result":"c"},{"jsonrpc":"2.0","id":2,"result":"b"},{"jsonrpc":"2.0","id":1,"result":"a"}]` {
			t.Errorf("%s", got)
		}
		// A cancelled request has no answer, and nothing waits for it.
		b.put(t, "["+call("1", "a")+","+call("2", "b")+"]", "")
		b.gates["b"] <- struct{}{}
		b.put(t, `[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}]`, `[{"jsonrpc":"2.0","id":2,"result":"b"}]`)
		b.put(t, "["+call("1", "a")+"]", "")
		b.put(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, "")
		b.put(t, call("1", "d"), `{"jsonrpc":"2.0","id":1,"result":"d"}`)
	})
}

// TestBatchAnswers takes the answer to a question from a batch, once. The request that asks may
// be in a batch itself.
func TestBatchAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBatched(t, &jsonrpc.Options{})
		for i := range 2 {
			b.put(t, "["+call("1", "ask")+"]", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"question"}`, i))
			b.put(t, fmt.Sprintf(`[{"jsonrpc":"2.0","id":%d,"result":{"action":"decline"}},{"jsonrpc":"2.0","id":%d,"result":{"action":"accept"}}]`, i, i),
				`[{"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}]`)
		}
	})
}

// TestBatchEnd answers a batch whose requests are handled when the input ends.
func TestBatchEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRaw(t, echoMux(), &jsonrpc.Options{Batches: func() bool { return true }})
		r.run(context.Background())
		r.send(`[{"jsonrpc":"2.0","id":1,"method":"raw","params":[1]}]`)
		_ = r.in.Close()
		r.want(`[{"jsonrpc":"2.0","id":1,"result":[1]}]`)
	})
}

// TestBatchLimit closes the connection of a client whose answers wait for others without end.
func TestBatchLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBatched(t, &jsonrpc.Options{MaxUnsent: 1000})
		for range 150 { // what is sent does not count any more
			b.lines <- fmt.Appendf(nil, "[%s,%s]", call("1", "x"), call("2", "y"))
			if got := b.written(); got == "" {
				t.Fatal("no answer")
			}
		}
		for i := 0; b.Err() == nil; i++ {
			if i > 30 {
				t.Fatal("it holds answers without end")
			}
			b.lines <- fmt.Appendf(nil, "[%s,%s]", call(fmt.Sprint(2*i), "a"), call(fmt.Sprint(2*i+1), strings.Repeat("x", 100)))
			if got := b.written(); got != "" {
				t.Errorf("%s", got)
			}
		}
	})
}
