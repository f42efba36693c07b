package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// TestManyConversationsAtOnce runs 200 conversations on one server. Each has a question, and
// they are answered in random order. Each event and answer belongs to its call.
func TestManyConversationsAtOnce(t *testing.T) {
	const n = 200
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
		word := in[0].Text
		host.Emit(protocol.AgentMessageDelta{Delta: word})
		out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: word, Command: []string{"echo", word}, Cwd: "/"})
		host.Emit(protocol.AgentMessage{Message: fmt.Sprint(word, " ", out.Decision)})
		return nil
	})
	questions := make(chan func(), n)
	c := servertest.Connect(t, codexserver.New(e, nil), func(ctx context.Context) (string, error) {
		answered := make(chan struct{})
		questions <- func() { close(answered) }
		<-answered
		if strings.Contains(string(servertest.Question(ctx)), "odd") {
			return servertest.Decline, nil
		}
		return servertest.Accept, nil
	})

	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() {
			word, want := fmt.Sprint("even", i), "approved"
			if i%2 == 1 {
				word, want = fmt.Sprint("odd", i), "denied"
			}
			got, err := mcptypes.ToolsCall.Call(t.Context(), c, &mcptypes.CallToolRequestParams{Name: "codex", Arguments: json.RawMessage(`{"prompt":"` + word + `"}`)})
			if err != nil || !strings.Contains(string(got.StructuredContent), `"content":"`+word+" "+want+`"`) {
				t.Errorf("%s: %+v, %v", word, got, err)
			}
		})
	}
	// 32 questions are open at a time; each batch is answered in random order.
	for answered := 0; answered < n; {
		var open []func()
		for range min(32, n-answered) {
			open = append(open, <-questions)
		}
		rand.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
		for _, answer := range open {
			answer()
		}
		answered += len(open)
	}
	calls.Wait()
}

// TestEventsBelongToTheirCall sends calls at the same time and checks the request id of
// every event.
func TestEventsBelongToTheirCall(t *testing.T) {
	e := engine.TurnFunc(func(_ context.Context, host engine.Host, in []protocol.InputItem) error {
		for range 20 {
			host.Emit(protocol.AgentMessageDelta{Delta: in[0].Text})
			runtime.Gosched()
		}
		return nil
	})
	type event struct {
		Meta struct {
			RequestID jsonrpc.ID `json:"requestId"`
		} `json:"_meta"`
		Msg struct {
			Delta *string `json:"delta"`
		} `json:"msg"`
	}
	var mu sync.Mutex
	got := map[string]string{} // by request id, the deltas
	mux := &jsonrpc.Mux{}
	jsonrpc.HandleNotify(mux, "codex/event", func(_ context.Context, p event) error {
		mu.Lock()
		defer mu.Unlock()
		if p.Msg.Delta != nil {
			got[p.Meta.RequestID.String()] += *p.Msg.Delta
		}
		return nil
	})
	ours, theirs := jsonrpc.Pipe()
	peer := jsonrpc.NewPeer(ours, mux, &jsonrpc.Options{Inline: jsonrpc.Methods("codex/event")})
	running, served := make(chan error, 1), make(chan error, 1)
	go func() { running <- peer.Run(context.Background()) }()
	go func() { served <- codexserver.New(e, nil).Serve(context.Background(), theirs) }()
	var calls []*jsonrpc.Call
	for i := range 50 {
		calls = append(calls, peer.Start(t.Context(), "tools/call", map[string]any{
			"name": "codex", "arguments": map[string]any{"prompt": fmt.Sprintf("<%d>", i)},
		}))
	}
	for i, call := range calls {
		if err := call.Result(nil); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		events := got[call.ID().String()]
		mu.Unlock()
		if want := strings.Repeat(fmt.Sprintf("<%d>", i), 20); events != want {
			t.Errorf("call %s got the events %q", call.ID(), events)
		}
	}
	peer.Close()
	if err := errors.Join(<-running, <-served); err != nil {
		t.Error(err)
	}
}

// BenchmarkIdleConversation measures the memory that the server needs for an open
// conversation, without the engine's.
func BenchmarkIdleConversation(b *testing.B) {
	ours, theirs := jsonrpc.Pipe()
	peer := jsonrpc.NewPeer(ours, nil, nil)
	running, served := make(chan error, 1), make(chan error, 1)
	go func() { running <- peer.Run(context.Background()) }()
	go func() {
		served <- codexserver.New(engine.TurnFunc(servertest.Echo), nil).Serve(context.Background(), theirs)
	}()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		if err := peer.Call(b.Context(), "newConversation", struct{}{}, nil); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/float64(b.N), "heap-B/conversation")
	peer.Close()
	if err := errors.Join(<-running, <-served); err != nil {
		b.Error(err)
	}
}

// FuzzSession sends lines of the fuzzer, and checks that the server still answers.
func FuzzSession(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"f","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"codex","arguments":{"prompt":"p","config":{"a.b":1}}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"codex-reply","arguments":{"prompt":"p","threadId":"past"},"_meta":{"progressToken":"t"}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"newConversation","params":{"approvalPolicy":"never","sandbox":"read-only"}}`,
		`{"jsonrpc":"2.0","id":5,"method":"addConversationListener","params":{"conversationId":"past"}}`,
		`{"jsonrpc":"2.0","id":6,"method":"sendUserMessage","params":{"conversationId":"past","items":[{"type":"text","data":{"text":"x"}}]}}`,
		`{"jsonrpc":"2.0","id":9,"method":"fuzzyFileSearch","params":{"query":"q","roots":["/"],"cancellationToken":"t"}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		ours, theirs := jsonrpc.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- codexserver.New(&servertest.Engine{Turn: servertest.Echo}, nil).Serve(context.Background(), theirs)
		}()
		const probe = `{"jsonrpc":"2.0","id":"probe \u2713","method":"ping"}`
		lines := append(strings.Split(string(in), "\n"), probe)
		for _, line := range lines {
			if err := ours.Write(context.Background(), [][]byte{[]byte(line)}); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		for alive := false; !alive; {
			answer, err := ours.Read(ctx)
			if err != nil {
				t.Fatalf("no sign of life: %v", err)
			}
			alive = strings.Contains(string(answer), "probe ")
		}
		ours.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}
