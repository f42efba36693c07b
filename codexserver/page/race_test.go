package page_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// TestRace answers each of a thousand questions on the page and in the client at once, one
// approving and the other denying. One of the two answers is the decision. The page learns
// whether its answer counted, and engine and record get the same decision.
func TestRace(t *testing.T) {
	const conversations, rounds = 20, 50
	p := listen(t, nil)
	var (
		mu       sync.Mutex
		outcomes = map[string]elicit.Decision{}
		statuses = map[string]int{}
		released = map[string]chan struct{}{} // the client answers when it is closed
	)
	release := func(question string) chan struct{} {
		mu.Lock()
		defer mu.Unlock()
		if released[question] == nil {
			released[question] = make(chan struct{})
		}
		return released[question]
	}
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
		for i := range rounds {
			question := fmt.Sprintf("question-%s-%d", in[0].Text, i)
			out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{Command: []string{question}, Cwd: "/work"})
			mu.Lock()
			outcomes[question] = out.Decision
			mu.Unlock()
		}
		return nil
	})
	var record bytes.Buffer
	name := regexp.MustCompile(`question-\d+-\d+`)
	client := serve(t, e, &codexserver.Options{Desk: p, Record: &record}, func(ctx context.Context, p *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error) {
		select {
		case <-release(name.FindString(p.Message)):
		case <-ctx.Done(): // answered on the page
		}
		return &mcptypes.ElicitResult{Action: mcptypes.ElicitResultActionDecline}, nil
	})
	v := visit(t, p)
	stream := v.events()
	var calls, posts sync.WaitGroup
	for i := range conversations {
		calls.Go(func() {
			_, err := mcptypes.ToolsCall.Call(context.Background(), client, &mcptypes.CallToolRequestParams{
				Name: "codex", Arguments: json.RawMessage(fmt.Sprintf(`{"prompt":"%d"}`, i)),
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	answered := map[string]bool{}
	for len(answered) < conversations*rounds {
		l, ok := stream.next()
		if !ok {
			t.Fatal("the stream ended")
		}
		for _, c := range l.Conversations {
			for _, en := range c.Entries {
				if en.Question == nil || en.Question.State != "open" || answered[en.Question.Command] {
					continue
				}
				question := en.Question.Command
				answered[question] = true
				posts.Go(func() {
					r := v.request(http.MethodPost, fmt.Sprintf("/questions/%d", en.ID), `{"action":"accept"}`)
					// The client answers when the page's answer is on its way.
					on := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(release(question)) }}
					res, _ := v.send(r.WithContext(httptrace.WithClientTrace(r.Context(), on)))
					mu.Lock()
					statuses[question] = res.StatusCode
					mu.Unlock()
				})
			}
		}
	}
	calls.Wait()
	posts.Wait()

	wins := map[string]int{}
	for text := range bytes.Lines(record.Bytes()) {
		var rec struct {
			Question struct{ Command []string }
			Decision elicit.Decision
			By       string
		}
		if err := json.Unmarshal(text, &rec); err != nil {
			t.Fatal(err)
		}
		question := rec.Question.Command[0]
		decision, status := outcomes[question], statuses[question]
		want := map[string]elicit.Decision{"desk": elicit.Approved, "client": elicit.Denied}[rec.By]
		switch {
		case decision != want || rec.Decision != want:
			t.Errorf("%s: decided %s, recorded %s by %s", question, decision, rec.Decision, rec.By)
		case status != http.StatusNoContent && status != http.StatusConflict:
			t.Errorf("%s: the page got %d", question, status)
		case rec.By == "desk" && status != http.StatusNoContent:
			t.Errorf("%s: decided by the page, which was told %d", question, status)
		}
		delete(outcomes, question)
		wins[rec.By]++
	}
	if len(outcomes) > 0 || wins["desk"]+wins["client"] != conversations*rounds {
		t.Errorf("%d decisions recorded, %d not", wins["desk"]+wins["client"], len(outcomes))
	}
	t.Logf("the page decided %d, the client %d", wins["desk"], wins["client"])
}

// serve serves e to a client that answers questions.
func serve(t *testing.T, e engine.Engine, o *codexserver.Options, answer func(context.Context, *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error)) *jsonrpc.Peer {
	t.Helper()
	mux := &jsonrpc.Mux{}
	mcptypes.ElicitationCreate.Handle(mux, answer)
	ours, theirs := jsonrpc.Pipe()
	client := jsonrpc.NewPeer(ours, mux, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	var running sync.WaitGroup
	running.Go(func() {
		if err := client.Run(context.Background()); err != nil {
			t.Errorf("client: %v", err)
		}
	})
	running.Go(func() {
		if err := codexserver.New(e, o).Serve(context.Background(), theirs); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(func() {
		client.Close()
		running.Wait()
	})
	_, err := mcptypes.Initialize.Call(t.Context(), client, &mcptypes.InitializeRequestParams{
		ProtocolVersion: mcptypes.ProtocolVersion,
		Capabilities:    mcptypes.ClientCapabilities{Elicitation: map[string]json.RawMessage{}},
		ClientInfo:      mcptypes.Implementation{Name: "test", Version: "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
