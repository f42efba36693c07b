package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/web"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/webaddr"
)

// readPages gives an engine a web in which every name leads to a server with the page "text of
// HOST". The result counts the requests.
func readPages(t *testing.T, e *native.Engine, hosts ...string) *atomic.Int32 {
	t.Helper()
	requests := &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<h1>text of %s</h1>", r.Host)
	}))
	t.Cleanup(server.Close)
	listed, err := webaddr.ParseHosts(hosts)
	if err != nil {
		t.Fatal(err)
	}
	e.ReadPages(web.New(web.Options{Hosts: listed, Dial: func(ctx context.Context, network, _ string, check web.Check) (net.Conn, error) {
		if err := check(network, "93.184.216.34:80", nil); err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}}))
	return requests
}

func fetch(id, url string) providertest.ToolCall {
	return providertest.Tool(id, "fetch", map[string]any{"url": url})
}

func heard(r providertest.Request) providertest.Turn {
	return providertest.Say("heard: " + r.LastToolOutput())
}

// TestFetch has a model that reads a page, and a person who declines and accepts.
func TestFetch(t *testing.T) {
	t.Parallel()
	const url = "http://docs.example/guide?q=1"
	for _, tt := range []struct {
		name     string
		approval protocol.ApprovalPolicy
		hosts    []string
		decision elicit.Decision
		events   []string
		answer   string
		requests int32
		abort    bool
	}{
		{name: "accepted", approval: "on-request", decision: elicit.Approved, requests: 1, answer: "# text of docs.example",
			events: []string{"exec_approval_request fetch " + url, "exec_command_begin fetch " + url, "exec_command_end 0"}},
		{name: "declined", approval: "on-request", decision: elicit.Denied, answer: "the page was not fetched",
			events: []string{"exec_approval_request fetch " + url}},
		{name: "cancelled", approval: "on-request", decision: elicit.Abort, abort: true, events: []string{"exec_approval_request fetch " + url}},
		{name: "listed", approval: "never", hosts: []string{"http://docs.example"}, requests: 1, answer: "# text of docs.example",
			events: []string{"exec_command_begin fetch " + url, "exec_command_end 0"}},
		{name: "never", approval: "never", answer: "not fetched: the sandbox has no network, fetch.hosts"},
	} {
		for _, wire := range []string{"chat", "responses"} {
			t.Run(tt.name+" "+wire, func(t *testing.T) {
				b := setup(t, "---\nwire_api = \""+wire+"\"\n", native.Limits{}, providertest.Call(fetch("c1", url)), providertest.Turn{Func: heard})
				requests := readPages(t, b.engine, tt.hosts...)
				h := &host{exec: func(context.Context, protocol.ExecApprovalRequest) elicit.Decision { return tt.decision }}
				c := b.start(t, h, protocol.Config{ApprovalPolicy: tt.approval, Sandbox: protocol.SandboxWorkspaceWrite})
				err := c.Turn(t.Context(), say("read the guide"))
				var abort *engine.AbortError
				if errors.As(err, &abort) != tt.abort || err != nil && !tt.abort {
					t.Fatal(err)
				}
				var events []string
				for _, e := range h.take() {
					if strings.HasPrefix(e, "exec_") {
						events = append(events, e)
					}
					if text, ok := strings.CutPrefix(e, "agent_message heard: "); ok && !strings.Contains(text, tt.answer) {
						t.Errorf("the model got %q", text)
					}
				}
				diff(t, "events", tt.events, events)
				if got := requests.Load(); got != tt.requests {
					t.Errorf("%d requests", got)
				}
				validRequests(t, b.provider)
			})
		}
	}
}

// TestFetchInterrupted interrupts a turn while its page is on the way.
func TestFetchInterrupted(t *testing.T) {
	b := setup(t, "", native.Limits{}, providertest.Call(fetch("c1", "http://docs.example/slow")), providertest.Say("next"))
	readPages(t, b.engine, "http://docs.example")
	ctx, cancel := context.WithCancel(t.Context())
	h := &host{on: func(m protocol.EventMsg) {
		if _, ok := m.(protocol.ExecCommandBegin); ok {
			cancel()
		}
	}}
	c := b.start(t, h, protocol.Config{})
	var abort *engine.AbortError
	if err := c.Turn(ctx, say("read")); !errors.As(err, &abort) {
		t.Errorf("the turn ended with %v", err)
	}
	if err := c.Turn(t.Context(), say("again")); err != nil {
		t.Error(err)
	}
	validRequests(t, b.provider)
}

// TestManyFetches checks that several pages of listed hosts are read at the same time: each
// server's answer waits for the others.
func TestManyFetches(t *testing.T) {
	b := setup(t, "", native.Limits{}, providertest.Call(fetch("c1", "http://a.example/"), fetch("c2", "http://b.example/"), fetch("c3", "http://a.example/2")), providertest.Say("done"))
	all := make(chan struct{})
	var waiting atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if waiting.Add(1) == 3 {
			close(all)
		}
		select {
		case <-all:
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, r.Host, r.URL.Path)
	}))
	t.Cleanup(server.Close)
	listed, err := webaddr.ParseHosts([]string{"http://a.example", "http://b.example"})
	if err != nil {
		t.Fatal(err)
	}
	b.engine.ReadPages(web.New(web.Options{Hosts: listed, Dial: func(ctx context.Context, _, _ string, _ web.Check) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}}))
	h := &host{}
	turn(t, b.start(t, h, protocol.Config{}), say("read"))
	var got []string
	for _, m := range h.events {
		if end, ok := m.(protocol.ExecCommandEnd); ok {
			_, text, _ := strings.Cut(end.Stdout, "\n\n")
			got = append(got, end.CallID+" "+text)
		}
	}
	diff(t, "pages", []string{"c1 a.example/", "c2 b.example/", "c3 a.example/2"}, got)
}

// TestFetchOffered checks when the tool is offered: only if the engine's options say so, and
// neither in a review nor in a read-only conversation. Nothing that a call, a repository or
// config.toml says switches it on.
func TestFetchOffered(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fetch  native.Fetch
		call   protocol.Config
		review bool
		extra  string
		want   bool
		err    string // of Start
	}{
		{name: "default"},
		{name: "hosts alone", fetch: native.Fetch{Hosts: []string{"docs.example"}}},
		{name: "on", fetch: native.Fetch{Enabled: true}, want: true},
		{name: "on, with hosts", fetch: native.Fetch{Enabled: true, Hosts: []string{"docs.example", "*.docs.example"}}, want: true},
		{name: "in a review", fetch: native.Fetch{Enabled: true}, review: true},
		{name: "read-only", fetch: native.Fetch{Enabled: true}, call: protocol.Config{ReadOnly: true}},
		{name: "by a call", call: protocol.Config{Overrides: map[string]json.RawMessage{"fetch": json.RawMessage(`{"enabled":true,"hosts":["evil.example"]}`)}}, err: "fetch: is set for the whole server"},
		{name: "by config.toml", extra: "[fetch]\nenabled = true\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			model := providertest.New(providertest.Call(fetch("c1", "http://docs.example/")), providertest.Turn{Func: heard})
			t.Cleanup(model.Close)
			home := t.TempDir()
			write(t, home+"/config.toml", tt.extra)
			e, err := native.New(&native.Options{CodexHome: home, Fetch: tt.fetch, Overrides: map[string]any{
				"model": "m", "model_provider": "p", "model_providers.p.base_url": model.BaseURL(), "approval_policy": "never", "sandbox_mode": "read-only",
			}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = e.Close() })
			tt.call.Cwd = t.TempDir()
			h := &host{exec: approve}
			c, err := e.Start(t.Context(), tt.call, h)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("Start: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if tt.review {
				err = c.(engine.Reviewer).Review(t.Context(), protocol.Review{Prompt: "review"})
			} else {
				err = c.Turn(t.Context(), say("go"))
			}
			if err != nil {
				t.Fatal(err)
			}
			names, size := offered(t, model.Requests()[0].Body)
			if got := strings.Contains(" "+names+" ", " fetch "); got != tt.want {
				t.Errorf("tools %q", names)
			}
			if size > 4*2500 {
				t.Errorf("the tools have %d bytes", size)
			}
			t.Logf("%d bytes of tools", size)
			if heard := strings.Join(h.take(), "\n"); strings.Contains(heard, "unsupported call: fetch") == tt.want {
				t.Errorf("%s", heard)
			}
		})
	}
	for _, hosts := range [][]string{{"*"}, {"https://docs.example/path"}, {"localhost"}} {
		if _, err := native.New(&native.Options{CodexHome: t.TempDir(), Fetch: native.Fetch{Enabled: true, Hosts: hosts}}); err == nil || !strings.Contains(err.Error(), "fetch.hosts: ") {
			t.Errorf("%q: %v", hosts, err)
		}
	}
}
