package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// linkDesk is a desk with links to its questions.
type linkDesk struct {
	*servertest.Desk
	fails bool
}

const questionURL = "http://127.0.0.1:1/#secret"

// QuestionLink implements [approval.Linker].
func (d *linkDesk) QuestionLink(ctx context.Context, _ *approval.Request) (string, error) {
	if d.fails {
		return "", errors.New("it cannot show it")
	}
	return questionURL, servertest.Wait(ctx, time.Millisecond)
}

const (
	onlyURL   = `{"elicitation":{"url":{}}}`
	onlyForms = `{"elicitation":{"form":{}}}`
	both      = `{"elicitation":{"form":{},"url":{}}}`
)

// TestLinks asks clients that open links. The mode is how they are asked, "" for not at all. What
// they say about a link approves nothing; the desk answers five seconds after the question.
func TestLinks(t *testing.T) {
	accept, decline := servertest.Accept, servertest.Decline
	second := func(result string) lie { return lie{time.Second, result, false} }
	quick := func(result string) lie { return lie{2 * time.Millisecond, result, false} }
	prefers := setting.Asking{Link: true}
	only := setting.Asking{Where: setting.WherePage}
	onlyByLink := setting.Asking{Where: setting.WherePage, Link: true}
	for _, tt := range []struct {
		name         string
		capabilities string
		asking       setting.Asking
		says         lie    // the client
		desk         string // "none" for no page, "" for no answer
		fails        bool   // the page has no link to the question
		mode         string
		want         string // the decision and who decided
		void         bool
	}{
		{name: "opened, approved", capabilities: onlyURL, says: second(accept), desk: accept, mode: "url", want: "approved by desk"},
		{name: "opened, denied", capabilities: onlyURL, says: second(accept), desk: decline, mode: "url", want: "denied by desk"},
		{name: "opened, not answered", capabilities: onlyURL, says: second(accept), mode: "url", want: "denied"},
		{name: "opened at once", capabilities: onlyURL, says: quick(accept), desk: accept, mode: "url", want: "approved by desk"},
		{name: "opened at once, denied", capabilities: onlyURL, says: quick(accept), desk: decline, mode: "url", want: "denied by desk"},
		{name: "opened for the session", capabilities: onlyURL, says: second(servertest.ForSession), desk: decline, mode: "url", want: "denied by desk"},
		{name: "approved flatly", capabilities: onlyURL, says: second(`{"decision":"approved"}`), desk: decline, mode: "url", want: "denied by desk|denied by client"},
		{name: "not opened", capabilities: onlyURL, says: second(decline), desk: accept, mode: "url", want: "denied by client"},
		{name: "dismissed", capabilities: onlyURL, says: second(servertest.Cancel), desk: accept, mode: "url", want: "abort by client"},
		{name: "declined at once", capabilities: onlyURL, says: quick(decline), desk: accept, mode: "url", want: "approved by desk", void: true},
		{name: "declined at once, denied", capabilities: onlyURL, says: quick(decline), desk: decline, mode: "url", want: "denied by desk", void: true},
		{name: "dismissed at once", capabilities: onlyURL, says: quick(servertest.Cancel), desk: accept, mode: "url", want: "approved by desk", void: true},
		{name: "not answered", capabilities: onlyURL, says: lie{after: 20 * time.Second, result: accept}, desk: accept, mode: "url", want: "approved by desk"},
		{name: "an error", capabilities: onlyURL, says: lie{2 * time.Millisecond, "", true}, desk: accept, mode: "url", want: "approved by desk", void: true},
		{name: "forms and links", capabilities: both, says: second(accept), desk: decline, mode: "form", want: "approved by client"},
		{name: "forms and links, prefers links", capabilities: both, asking: prefers, says: second(accept), desk: decline, mode: "url", want: "denied by desk"},
		{name: "forms, prefers links", capabilities: onlyForms, asking: prefers, says: second(accept), desk: decline, mode: "form", want: "approved by client"},
		{name: "no page, only links", capabilities: onlyURL, says: second(accept), desk: "none", want: "denied by client"},
		{name: "no page, prefers links", capabilities: both, asking: prefers, says: second(accept), desk: "none", mode: "form", want: "approved by client"},
		{name: "asked in the client", capabilities: onlyURL, asking: setting.Asking{Where: setting.WhereHost, Link: true}, says: second(accept), desk: accept, want: "approved by desk"},
		{name: "asked on the page", capabilities: both, asking: only, says: second(accept), desk: accept, want: "approved by desk"},
		{name: "asked on the page, only links", capabilities: onlyURL, asking: only, says: second(accept), desk: accept, want: "approved by desk"},
		{name: "asked on the page by links", capabilities: both, asking: onlyByLink, says: second(accept), desk: decline, mode: "url", want: "denied by desk"},
		{name: "asked on the page by links, shows forms", capabilities: onlyForms, asking: onlyByLink, says: second(accept), desk: decline, want: "denied by desk"},
		{name: "no link", capabilities: onlyURL, says: second(accept), desk: accept, fails: true, want: "approved by desk"},
		{name: "no link, so a form", capabilities: both, asking: prefers, says: second(accept), desk: decline, fails: true, mode: "form", want: "approved by client"},
		{name: "no link, and only the page", capabilities: both, asking: onlyByLink, says: second(accept), desk: decline, fails: true, want: "denied by desk"},
	} {
		for _, era := range []string{"handshake", "rounds", "task"} {
			if tt.says.fails && era != "handshake" {
				continue
			}
			t.Run(tt.name+"/"+era, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := &codexserver.Options{Asking: tt.asking, Approvals: elicit.Options{Timeout: time.Minute}}
					desk := &linkDesk{&servertest.Desk{Invitation: "come here"}, tt.fails}
					if tt.desk != "none" {
						o.Desk = desk
					}
					if tt.desk != "" {
						desk.Answer = servertest.After(5*time.Second, tt.desk)
					}
					if era == "task" {
						o.Home, o.Changes.Off = t.TempDir(), true
					}
					h := &linkHost{lyingHost: lyingHost{t: t, lies: []lie{tt.says}, era: era, capabilities: tt.capabilities}}
					began := time.Now()
					decided, result := h.run(o)
					want := tt.want
					if flat, modern, ok := strings.Cut(want, "|"); ok {
						if want = flat; era != "handshake" {
							want = modern
						}
					}
					if o.Desk != nil {
						decided = strings.Join(desk.Decisions(), " ")
					} else {
						decided += " by client"
					}
					if tt.desk == "" { // it is the one that gave up last
						decided, _, _ = strings.Cut(decided, " ")
					}
					if diff := cmp.Diff(want, decided); diff != "" {
						t.Errorf("decision (-want +got):\n%s\n%s", diff, result)
					}
					if took := time.Since(began); took > 62*time.Second {
						t.Errorf("it took %v", took)
					}
					if void := strings.Contains(result, "That did not count; the decision came from the approvals page."); void != tt.void {
						t.Errorf("the result says what did not count: %t\n%s", void, result)
					}
					h.check(tt.mode, strings.Contains(tt.says.result, "accept") || strings.Contains(tt.says.result, "approved"))
				})
			})
		}
	}
}

// TestLinkThenForm has a client that opens links declare only forms after the first of two questions.
// It gets a form for the second one unless only the page may answer.
func TestLinkThenForm(t *testing.T) {
	for where, want := range map[setting.Where]string{setting.WherePage: "denied by desk denied by desk", setting.WhereBoth: "denied by desk approved by client"} {
		synctest.Test(t, func(t *testing.T) {
			desk := &linkDesk{Desk: &servertest.Desk{Answer: servertest.After(5*time.Second, servertest.Decline)}}
			h := &linkHost{lyingHost: lyingHost{t: t, lies: []lie{{time.Second, servertest.Accept, false}}, era: "rounds", capabilities: onlyURL}, times: 2}
			h.seen = func(json.RawMessage) { h.capabilities = onlyForms }
			h.run(&codexserver.Options{Desk: desk, Asking: setting.Asking{Where: where, Link: true}})
			if diff := cmp.Diff(want, strings.Join(desk.Decisions(), " ")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", where, diff)
			}
		})
	}
}

// linkHost is a client that keeps what it is asked.
type linkHost struct {
	lyingHost
	questions, completed []json.RawMessage
	times                int // how often the turn asks; 0 is once
}

// run runs a turn that asks.
func (h *linkHost) run(o *codexserver.Options) (decision, result string) {
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		for range max(1, h.times) {
			out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "one", Command: []string{"touch", "one"}, Cwd: "/work"})
			decision = string(out.Decision)
			if out.Decision == elicit.Abort {
				return &engine.AbortError{}
			}
		}
		return nil
	})
	ours, theirs := jsonrpc.Pipe()
	h.peer = jsonrpc.NewPeer(ours, h, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	running, served := make(chan error, 1), make(chan error, 1)
	go func() { running <- h.peer.Run(context.Background()) }()
	go func() { served <- codexserver.New(e, o).Serve(context.Background(), theirs) }()
	if h.seen == nil {
		h.seen = func(q json.RawMessage) { h.questions = append(h.questions, q) }
	}
	result = h.call()
	synctest.Wait()
	h.peer.Close()
	if err := errors.Join(<-running, <-served); err != nil {
		h.t.Error(err)
	}
	return decision, result
}

// ServeRPC implements [jsonrpc.Handler].
func (h *linkHost) ServeRPC(ctx context.Context, r *jsonrpc.Request) (any, error) {
	if r.Method == "notifications/elicitation/complete" {
		h.completed = append(h.completed, r.Params)
	}
	if !r.IsNotification() {
		h.questions = append(h.questions, r.Params)
	}
	return h.lyingHost.ServeRPC(ctx, r)
}

// check checks how the client was asked, and that it was told the end of a link that it may open.
func (h *linkHost) check(mode string, opened bool) {
	h.t.Helper()
	if mode == "" {
		if len(h.questions) > 0 {
			h.t.Errorf("asked by %s", h.questions)
		}
		return
	}
	if len(h.questions) != 1 {
		h.t.Fatalf("asked %d times", len(h.questions))
	}
	var q struct {
		Params *json.RawMessage
	}
	raw := h.questions[0]
	if err := json.Unmarshal(raw, &q); err == nil && q.Params != nil {
		raw = *q.Params
	}
	var p map[string]json.RawMessage
	if err := json.Unmarshal(raw, &p); err != nil {
		h.t.Fatal(err)
	}
	if got := string(p["mode"]); got != fmt.Sprintf("%q", mode) {
		h.t.Errorf("asked by %s", raw)
	}
	if mode == "form" {
		if strings.Contains(string(raw), "http") || len(h.completed) > 0 {
			h.t.Errorf("a form has a link: %s, %s", raw, h.completed)
		}
		return
	}
	id := p["elicitationId"]
	delete(p, "elicitationId")
	delete(p, "_meta")
	want := map[string]json.RawMessage{
		"mode": json.RawMessage(`"url"`), "url": json.RawMessage(`"` + questionURL + `"`),
		"message": json.RawMessage("\"Open the link to decide. Opening it approves nothing.\\nAllow Codex to run `touch one` in `/work`?\""),
	}
	if diff := cmp.Diff(want, p); diff != "" {
		h.t.Errorf("params (-want +got):\n%s", diff)
	}
	var ends []string
	for _, raw := range h.completed {
		ends = append(ends, string(raw))
	}
	switch {
	case h.era != "handshake":
		if id != nil || ends != nil {
			h.t.Errorf("this version has neither %s nor %s", id, ends)
		}
	case opened:
		if diff := cmp.Diff([]string{`{"elicitationId":` + string(id) + `}`}, ends); diff != "" {
			h.t.Errorf("the ends of links (-want +got):\n%s", diff)
		}
	case len(ends) > 0:
		h.t.Errorf("the client has answered, and gets the end %s", ends)
	}
}
