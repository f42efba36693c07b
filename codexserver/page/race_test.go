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
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// TestRace answers each of many questions on the page and in the client at once, one
// approving and the other denying. One of the two answers is the decision. The page learns
// whether its answer counted, and engine and record get the same decision.
func TestRace(t *testing.T) {
	t.Parallel()
	const conversations, rounds = 20, 15
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
	c, err := client.Start(t.Context(), &client.Options{
		Server:   codexserver.New(e, &codexserver.Options{Desk: p, Record: &record}),
		Protocol: mcptypes.ProtocolVersion, // its questions are withdrawn
		Ask: func(ctx context.Context, q *client.Question) elicit.Outcome {
			select {
			case <-release(name.FindString(q.Message)):
			case <-ctx.Done(): // answered on the page
			}
			return elicit.Outcome{Decision: elicit.Denied}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	v := visit(t, p)
	stream := v.events()
	var calls, posts sync.WaitGroup
	for i := range conversations {
		calls.Go(func() {
			if r, err := c.Run(t.Context(), client.Task{Prompt: fmt.Sprint(i)}); err != nil || r.Err() != nil {
				t.Error(err, r.Err())
			}
		})
	}
	answered := map[string]bool{}
	for len(answered) < conversations*rounds {
		l, ok := stream.next()
		if !ok {
			t.Fatal("the stream ended")
		}
		for _, q := range l.Questions {
			if q.Question.State != "open" || answered[q.Question.Command] {
				continue
			}
			question := q.Question.Command
			answered[question] = true
			posts.Go(func() {
				r := v.request(http.MethodPost, fmt.Sprintf("/questions/%d", q.ID), `{"action":"accept"}`)
				// The client answers when the page's answer is on its way.
				on := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(release(question)) }}
				res, _ := v.send(r.WithContext(httptrace.WithClientTrace(r.Context(), on)))
				mu.Lock()
				statuses[question] = res.StatusCode
				mu.Unlock()
			})
		}
	}
	calls.Wait()
	posts.Wait()

	wins := map[string]int{}
	for text := range bytes.Lines(record.Bytes()) {
		var rec struct {
			Command  []string
			Decision elicit.Decision
			By       string
		}
		if err := json.Unmarshal(text, &rec); err != nil {
			t.Fatal(err)
		}
		question := rec.Command[0]
		decision, status := outcomes[question], statuses[question]
		want := map[string]elicit.Decision{"page": elicit.Approved, "client": elicit.Denied}[rec.By]
		switch {
		case decision != want || rec.Decision != want:
			t.Errorf("%s: decided %s, recorded %s by %s", question, decision, rec.Decision, rec.By)
		case status != http.StatusNoContent && status != http.StatusConflict:
			t.Errorf("%s: the page got %d", question, status)
		case rec.By == "page" && status != http.StatusNoContent:
			t.Errorf("%s: decided by the page, which was told %d", question, status)
		}
		delete(outcomes, question)
		wins[rec.By]++
	}
	if len(outcomes) > 0 || wins["page"]+wins["client"] != conversations*rounds {
		t.Errorf("%d decisions recorded, %d not", wins["page"]+wins["client"], len(outcomes))
	}
	t.Logf("the page decided %d, the client %d", wins["page"], wins["client"])
}
