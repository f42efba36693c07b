package browsertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/page"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// opener is a client that shows no forms, and opens each link of a question.
type opener struct {
	links chan string
	ended chan string // the ids in notifications/elicitation/complete
	peer  *jsonrpc.Peer
}

// ServeRPC implements [jsonrpc.Handler].
func (o *opener) ServeRPC(_ context.Context, r *jsonrpc.Request) (any, error) {
	var p struct{ ElicitationID, URL string }
	if err := json.Unmarshal(r.Params, &p); err != nil {
		return nil, err
	}
	switch r.Method {
	case "notifications/elicitation/complete":
		o.ended <- p.ElicitationID
	case "elicitation/create":
		o.links <- p.URL
		return json.RawMessage(`{"action":"accept"}`), nil
	}
	return nil, nil
}

// call calls the tool codex in an era, and opens what it is asked.
func (o *opener) call(ctx context.Context, modern bool) (answer string, err error) {
	const can = `{"elicitation":{"url":{}}}`
	send := func(method, params string, result any) error {
		return o.peer.Call(ctx, method, json.RawMessage("{"+params+"}"), result)
	}
	call, meta := `"name":"codex","arguments":{"prompt":"git push"}`, ""
	if modern {
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + can + `}`
	} else if err := send("initialize", `"protocolVersion":"2025-11-25","clientInfo":{"name":"opener","version":"1"},"capabilities":`+can, nil); err != nil {
		return "", err
	}
	for again := ""; ; {
		var r struct {
			RequestState  string
			InputRequests map[string]struct{ Params struct{ URL string } }
			Content       []struct{ Text string }
		}
		var raw json.RawMessage
		if err := send("tools/call", call+again+meta, &raw); err != nil {
			return "", err
		}
		if err := json.Unmarshal(raw, &r); err != nil {
			return "", err
		}
		if len(r.Content) > 0 {
			return r.Content[0].Text, nil
		}
		for key, q := range r.InputRequests {
			o.links <- q.Params.URL
			again = fmt.Sprintf(`,"requestState":%q,"inputResponses":{%q:{"action":"accept"}}`, r.RequestState, key)
		}
	}
}

// A client opens the link of a question: its tab has this question alone, once.
func TestQuestionLink(t *testing.T) {
	for _, modern := range []bool{false, true} {
		p, err := page.Listen(nil)
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := jsonrpc.Pipe()
		o := &opener{links: make(chan string, 1), ended: make(chan string, 1)}
		o.peer = jsonrpc.NewPeer(ours, o, nil)
		running, served, answer := make(chan error, 1), make(chan error, 1), make(chan string, 1)
		go func() { running <- o.peer.Run(context.Background()) }()
		go func() {
			served <- codexserver.New(asking, &codexserver.Options{Desk: p}).Serve(context.Background(), theirs)
		}()
		go func() {
			words, err := o.call(t.Context(), modern)
			answer <- fmt.Sprint(words, err)
		}()
		link := get(t, o.links)
		b := newTab(t)
		b.visit(link)
		b.see(`live() && questions.size === 1 && selected.view.command === "git push"`)
		if eval[bool](b, `document.querySelector("#conversations").checkVisibility() || location.hash !== ""`) {
			t.Error("the tab of a question shows more, or keeps its link")
		}
		used := func() {
			t.Helper()
			other := newTab(t)
			other.visit(link)
			other.see(`document.querySelector("#door-why").textContent === "This link was used already, or is too old."`)
		}
		used()
		b.do(chromedp.Reload())
		b.see(`live() && questions.size === 1`)
		b.settle()
		b.press("y")
		if got := get(t, answer); got != "approved<nil>" {
			t.Errorf("the call returned %s", got)
		}
		b.see(`questions.size === 0 && document.querySelector("#nothing").checkVisibility() && document.querySelector("#nothing").textContent.startsWith("This question is decided.")`)
		used()
		if !modern {
			get(t, o.ended)
		}
		o.peer.Close()
		if err := errors.Join(<-running, <-served, p.Close()); err != nil {
			t.Error(err)
		}
	}
}
