package mcphttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// connect returns a peer that is connected to a URL.
func connect(t *testing.T, url string, h jsonrpc.Handler) *jsonrpc.Peer {
	t.Helper()
	return connectBy(t, url, h, nil)
}

func initialize(t *testing.T, p *jsonrpc.Peer) {
	t.Helper()
	answer, err := mcptypes.Initialize.Call(t.Context(), p, &mcptypes.InitializeRequestParams{
		ProtocolVersion: "2025-11-25", ClientInfo: mcptypes.Implementation{Name: "t", Version: "1"},
		Capabilities: mcptypes.ClientCapabilities{Elicitation: map[string]json.RawMessage{}},
	})
	if err != nil || answer.ProtocolVersion != "2025-11-25" {
		t.Fatalf("initialize: %+v, %v", answer, err)
	}
	must.OK(t, mcptypes.NotificationsInitialized.Notify(t.Context(), p, nil))
}

func tool(t *testing.T, ctx context.Context, p *jsonrpc.Peer, prompt string) (string, error) {
	t.Helper()
	var raw json.RawMessage
	err := p.Call(ctx, "tools/call", json.RawMessage(`{"name":"codex","arguments":{"prompt":"`+prompt+`"}}`), &raw)
	return string(raw), err
}

// TestClientSession sends requests and a question of a session by the transport.
func TestClientSession(t *testing.T) {
	s := open(t, asking, nil, nil)
	m := &jsonrpc.Mux{}
	asked := make(chan string, 1)
	mcptypes.ElicitationCreate.Handle(m, func(_ context.Context, p *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error) {
		asked <- p.Message
		return &mcptypes.ElicitResult{Action: "accept"}, nil
	})
	p := connect(t, s.url, m)
	if err := p.Call(t.Context(), "ping", nil, nil); !errors.Is(err, jsonrpc.CodeInvalidParams) {
		t.Errorf("before initialize: %v", err)
	}
	initialize(t, p)
	for range 3 {
		if got, err := tool(t, t.Context(), p, "go"); err != nil || !strings.Contains(got, "decided "+string(elicit.Approved)) {
			t.Errorf("%s, %v", got, err)
		}
		wait(t, asked)
	}
	if err := p.Call(t.Context(), "no/such", nil, nil); !errors.Is(err, jsonrpc.CodeMethodNotFound) {
		t.Errorf("an unknown method: %v", err)
	}
}

// TestClientModern sends requests of 2026-07-28 by the transport.
func TestClientModern(t *testing.T) {
	s := open(t, echo, nil, nil)
	p := connect(t, s.url, nil)
	for _, tt := range []struct{ method, params, want string }{
		{"server/discover", call, `"supportedVersions"`},
		{"tools/call", ofThread, "no conversation"}, // refused if no header mirrors the thread, with and without a list
		{"tools/list", call, `"codex-reply"`},
		{"tools/call", ofThread, "no conversation"},
		{"tools/call", call, "heard hello"},
	} {
		var raw json.RawMessage
		if err := p.Call(t.Context(), tt.method, json.RawMessage(`{`+tt.params+`,`+todaysMeta+`}`), &raw); err != nil || !strings.Contains(string(raw), tt.want) {
			t.Errorf("%s: %s, %v", tt.method, raw, err)
		}
	}
	if err := p.Call(t.Context(), "ping", json.RawMessage(`{`+todaysMeta+`}`), nil); !errors.Is(err, jsonrpc.CodeMethodNotFound) {
		t.Errorf("a removed method: %v", err)
	}
	if err := p.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"nöpe",`+todaysMeta+`}`), nil); !errors.Is(err, jsonrpc.CodeInvalidParams) {
		t.Errorf("an unknown tool: %v", err)
	}
}

// TestClientCancels cancels turns of both eras.
func TestClientCancels(t *testing.T) {
	e, began, ended := stuck()
	s := open(t, e, nil, nil)
	p := connect(t, s.url, nil)
	initialize(t, p)
	for _, params := range []string{`{` + call + `}`, `{` + call + `,` + todaysMeta + `}`} {
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- p.Call(ctx, "tools/call", json.RawMessage(params), nil) }()
		wait(t, began)
		cancel()
		wait(t, ended)
		if err := wait(t, over); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if err := p.Call(t.Context(), "ping", nil, nil); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// TestClientWithoutServer checks the errors for a server that cannot be reached, refuses the
// token, or is not an MCP server.
func TestClientWithoutServer(t *testing.T) {
	var status atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := int(status.Load()); n != 0 {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(n)
			return
		}
		panic(http.ErrAbortHandler)
	}))
	p := connect(t, other.URL, nil)
	meta := json.RawMessage(`{` + todaysMeta + `}`)
	for _, n := range []int64{0, 200, 202, 302, 401, 403, 500, 503} {
		status.Store(n)
		for _, params := range []json.RawMessage{nil, meta} {
			if err := p.Call(t.Context(), "initialize", params, nil); !errors.Is(err, jsonrpc.CodeInternalError) {
				t.Errorf("status %d: %v", n, err)
			}
		}
	}
	other.Close()
	if err := p.Call(t.Context(), "tools/list", meta, nil); !errors.Is(err, jsonrpc.CodeInternalError) || !strings.Contains(err.Error(), other.URL) {
		t.Errorf("without a server: %v", err)
	}
}

func TestClientAddress(t *testing.T) {
	for url, ok := range map[string]bool{
		"http://127.0.0.1:4517/mcp": true, "http://localhost/mcp": true, "http://[::1]:1/": true, "https://example.com/mcp": true,
		"http://example.com/mcp": false, "http://localhost.example.com/": false, "ftp://localhost/": false, "localhost:4517": false,
		"": false, "http://": false, "https://user:password@example.com/": false,
	} {
		o := &mcphttp.ClientOptions{URL: url}
		if err := o.Validate(); (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// handlerTransport is an [http.RoundTripper] that calls a handler, without a network.
type handlerTransport func(r *http.Request) *http.Response

func (f handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if answer := f(r); answer != nil {
		return answer, nil
	}
	return nil, errors.New("connection refused")
}

// answerOf returns a response with a body.
func answerOf(status int, kind string, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Body: io.NopCloser(body), Header: http.Header{"Content-Type": {kind}, "Mcp-Session-Id": {"s"}}}
}

// scriptedServer is a server of the older versions whose calls of tools are answered by a script. A
// nil response means that the server cannot be reached.
type scriptedServer struct {
	post, resume func(id string) *http.Response
	started      atomic.Int64  // sessions
	hold         chan struct{} // closed when all but the first session may begin; nil for at once
}

func (s *scriptedServer) serve(r *http.Request) *http.Response {
	if r.Method == http.MethodGet {
		if last := r.Header.Get("Last-Event-Id"); last != "" {
			return s.resume(last)
		}
		return answerOf(http.StatusMethodNotAllowed, "text/plain", strings.NewReader(""))
	}
	if r.Method == http.MethodDelete {
		return answerOf(http.StatusNoContent, "", strings.NewReader(""))
	}
	var m struct {
		ID     json.RawMessage
		Method string
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	switch {
	case err != nil:
		return answerOf(http.StatusBadRequest, "text/plain", strings.NewReader(err.Error()))
	case m.Method == "initialize":
		if s.started.Add(1) > 1 && s.hold != nil {
			<-s.hold
		}
		return answerOf(http.StatusOK, "application/json", strings.NewReader(
			`{"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}},"id":`+string(m.ID)+`,"jsonrpc":"2.0"}`))
	case m.ID == nil, m.Method == "":
		return answerOf(http.StatusAccepted, "", strings.NewReader(""))
	}
	return s.post(string(m.ID))
}

// proxied returns a peer that is connected to a scripted server.
func proxied(t *testing.T, s *scriptedServer) *jsonrpc.Peer {
	t.Helper()
	p := connectBy(t, "http://127.0.0.1:1/mcp", nil, handlerTransport(s.serve))
	initialize(t, p)
	return p
}

func eventsOf(lines string) *http.Response {
	return answerOf(http.StatusOK, "text/event-stream", strings.NewReader(lines))
}

// TestMaxMessageIsExact reads answers that are as long as one may be, and a byte longer, in each form.
func TestMaxMessageIsExact(t *testing.T) {
	const limit = 5000
	for _, form := range []string{"data: %s\n\n", "data:%s\r\n\r\n", "data: %s\r\n\r\n", "json"} {
		for extra, fits := range map[int]bool{-1: true, 0: true, 1: false} {
			synctest.Test(t, func(t *testing.T) {
				s := &scriptedServer{post: func(id string) *http.Response {
					body := `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[],"x":"_"}}`
					body = strings.Replace(body, "_", strings.Repeat("x", limit+extra-len(body)+1), 1)
					if form == "json" {
						return answerOf(http.StatusOK, "application/json", strings.NewReader(body))
					}
					return eventsOf(fmt.Sprintf(form, body))
				}}
				o := &mcphttp.ClientOptions{
					URL: "http://127.0.0.1:1/mcp", MaxMessage: limit, Transport: handlerTransport(s.serve),
				}
				p := connectWith(t, o, nil)
				initialize(t, p)
				if _, err := tool(t, t.Context(), p, "go"); fits != (err == nil) {
					t.Errorf("%d bytes of %d as %q: %v", limit+extra, limit, form, err)
				}
			})
		}
	}
}

// TestClientMembersInAnyOrder forwards answers whose members are in another order than ours.
func TestClientMembersInAnyOrder(t *testing.T) {
	const long = `{"content":[{"type":"text","text":"it is\n","id":7}]}`
	for _, answer := range []string{
		`{"result":` + long + `,"id":ID,"jsonrpc":"2.0"}`, `{"result":` + long + `,"jsonrpc":"2.0","id":ID}`,
		`{"id":ID,"result":` + long + `,"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":ID,"result":` + long + `}`,
	} {
		for _, form := range []string{"data: %s\n\n", "data:%s\r\n\r\n", ":c\nevent: message\nid:7\ndata:%s\n\n", "json"} {
			synctest.Test(t, func(t *testing.T) {
				s := &scriptedServer{post: func(id string) *http.Response {
					body := strings.Replace(answer, "ID", id, 1)
					if form == "json" {
						return answerOf(http.StatusOK, "application/json", strings.NewReader(body))
					}
					return eventsOf(fmt.Sprintf(form, body))
				}}
				if got, err := tool(t, t.Context(), proxied(t, s), "go"); err != nil || got != long {
					t.Errorf("%s as %q: %s, %v", answer, form, got, err)
				}
			})
		}
	}
}

// TestClientWaitsAsTheServerSays breaks a stream after an event with a retry field.
func TestClientWaitsAsTheServerSays(t *testing.T) {
	for _, tt := range []struct {
		primed string
		want   time.Duration
	}{
		{"id: 1\nretry: 1000\ndata: \n\n", time.Second}, {"id: 1\nretry: 2500\ndata: \n\n", 2500 * time.Millisecond},
		{"id:1\nretry:7000\ndata:\n\n", 7 * time.Second}, {"retry: 3000\n\nid: 1\ndata: \n\n", 3 * time.Second},
		{"id: 1\ndata: \n\n", time.Second}, {"id: 1\nretry: soon\ndata: \n\n", time.Second},
		{"id: 1\nretry: 99999999999999999999\ndata: \n\n", time.Second},
		{"id: 1\nretry: 3600000\ndata: \n\n", time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			var call, broke string
			var at time.Time
			s := &scriptedServer{
				post: func(id string) *http.Response {
					call, at = id, time.Now()
					return eventsOf(tt.primed + "id: 2\ndata: {\"torn")
				},
				resume: func(last string) *http.Response {
					broke = last
					must.Equal(t, fmt.Sprintf("%q: resumed after", tt.primed), tt.want, time.Since(at))
					return eventsOf(`data: {"jsonrpc":"2.0","id":` + call + `,"result":{}}` + "\n\n")
				},
			}
			if got, err := tool(t, t.Context(), proxied(t, s), "go"); err != nil || got != "{}" || broke != "1" {
				t.Errorf("%q: %s, %v, resumed after the event %q", tt.primed, got, err, broke)
			}
		})
	}
}

// TestClientOutlastsARestart makes the server unreachable for a while after a stream broke.
func TestClientOutlastsARestart(t *testing.T) {
	for _, tt := range []struct {
		away time.Duration
		then int // the status afterwards
		want string
	}{
		{time.Minute, 200, "{}"},
		{90 * time.Second, 503, "{}"}, // 503 for some seconds, then 200
		{time.Minute, 404, "the session has ended"},
		{time.Minute, 400, "not kept"},
		{time.Hour, 200, "connection refused"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var call string
			var at time.Time
			tries := 0
			s := &scriptedServer{
				post: func(id string) *http.Response {
					call, at = id, time.Now()
					return eventsOf("id: 1\nretry: 1000\ndata: \n\n")
				},
				resume: func(string) *http.Response {
					tries++
					away := time.Since(at)
					switch {
					case away < tt.away:
						return nil
					case tt.then == 404:
						return answerOf(404, "application/json", strings.NewReader(`{"jsonrpc":"2.0","error":{"code":-32600,"message":"the session has ended"}}`))
					case tt.then == 400:
						return answerOf(400, "text/plain", strings.NewReader("the events after this are not kept\n"))
					case tt.then == 503 && away < tt.away+5*time.Second:
						return answerOf(503, "text/plain", strings.NewReader("starting\n"))
					}
					return eventsOf(`data: {"jsonrpc":"2.0","id":` + call + `,"result":{}}` + "\n\n")
				},
			}
			p := proxied(t, s)
			begin := time.Now()
			got, err := tool(t, t.Context(), p, "go")
			if err != nil {
				got = err.Error()
			}
			if took := time.Since(begin); !strings.Contains(got, tt.want) || took < min(tt.away, time.Minute) || took > 3*time.Minute || tries > 60 {
				t.Errorf("away for %v, then %d: %s after %v and %d tries", tt.away, tt.then, got, took, tries)
			}
		})
	}
}

// TestClientOpensANewSession checks that a request after a restart of the server opens a new
// session, with the client's own initialize, and is sent again.
func TestClientOpensANewSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedServer{}
		posts := 0
		s.post = func(id string) *http.Response {
			if posts++; s.started.Load() == 1 && posts > 1 {
				return answerOf(404, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32600,"message":"the session has ended"}}`))
			}
			return answerOf(200, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":`+id+`,"result":{}}`))
		}
		p := proxied(t, s)
		for range 3 {
			if got, err := tool(t, t.Context(), p, "go"); err != nil || got != "{}" {
				t.Errorf("%s, %v", got, err)
			}
		}
		if n := s.started.Load(); n != 2 || posts != 4 {
			t.Errorf("%d sessions, %d calls", n, posts)
		}
	})
}

// TestClientOpensOneSession sends a request while another one opens a session in place of one that the server has
// forgotten, and gives up a third.
func TestClientOpensOneSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedServer{hold: make(chan struct{})}
		s.post = func(id string) *http.Response {
			if s.started.Load() == 1 {
				return answerOf(404, "text/plain", strings.NewReader("no such session"))
			}
			return answerOf(200, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":`+id+`,"result":{}}`))
		}
		p := connectWith(t, &mcphttp.ClientOptions{URL: "http://127.0.0.1:1/", Transport: handlerTransport(s.serve)}, nil)
		initialize(t, p)
		results := make(chan error, 2)
		for range cap(results) {
			go func() {
				_, err := tool(t, t.Context(), p, "go")
				results <- err
			}()
			synctest.Wait()
		}
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := tool(t, brief, p, "go"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the request that was given up: %v", err)
		}
		close(s.hold)
		for range cap(results) {
			must.OK(t, <-results)
		}
		if n := s.started.Load(); n != 2 {
			t.Errorf("%d sessions", n)
		}
	})
}

// TestClientOpenQuestionKeepsItsSession restarts the server while the client has a question. No session takes the place of
// the old one before the client has answered, because the answer could count for a question of the new session.
func TestClientOpenQuestionKeepsItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := func(string) *http.Response { return answerOf(404, "text/plain", strings.NewReader("no such session")) }
		s := &scriptedServer{resume: lost}
		s.post = func(string) *http.Response {
			return eventsOf("id: 1\ndata: {\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"elicitation/create\",\"params\":{}}\n\n")
		}
		answer := make(chan bool)
		m := &jsonrpc.Mux{}
		m.HandleRaw("elicitation/create", func(context.Context, json.RawMessage) (any, error) {
			<-answer
			return map[string]string{"action": "accept"}, nil
		})
		p := connectBy(t, "http://127.0.0.1:1/mcp", m, handlerTransport(s.serve))
		initialize(t, p)
		if _, err := tool(t, t.Context(), p, "go"); err == nil || !strings.Contains(err.Error(), "session has ended") {
			t.Errorf("the call that asked: %v", err)
		}
		s.post = func(id string) *http.Response {
			if s.started.Load() == 1 {
				return lost(id)
			}
			return answerOf(200, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":`+id+`,"result":{}}`))
		}
		if got, err := tool(t, t.Context(), p, "go"); err == nil || s.started.Load() != 1 {
			t.Errorf("with an open question: %s, %v, %d sessions", got, err, s.started.Load())
		}
		answer <- true
		synctest.Wait()
		if got, err := tool(t, t.Context(), p, "go"); err != nil || got != "{}" || s.started.Load() != 2 {
			t.Errorf("afterwards: %s, %v, %d sessions", got, err, s.started.Load())
		}
	})
}

// TestClientCloses closes the transport while the server does not answer, and while nobody reads what it sent.
func TestClientCloses(t *testing.T) {
	for _, answers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			server := &scriptedServer{}
			c, err := mcphttp.NewClient(&mcphttp.ClientOptions{URL: "http://127.0.0.1:1/", Transport: handlerTransport(func(r *http.Request) *http.Response {
				if !answers {
					<-r.Context().Done()
					return nil
				}
				return server.serve(r)
			})})
			must.OK(t, err)
			for range 12 { // more than may wait to be read
				must.OK(t, c.Write(t.Context(), [][]byte{[]byte(`{"id":1}`), []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)}))
				if !answers {
					break
				}
			}
			began := time.Now()
			if err := c.Close(); err != nil || time.Since(began) > 3*time.Second {
				t.Errorf("closed after %v: %v", time.Since(began), err)
			}
			if err := c.Write(t.Context(), [][]byte{[]byte(`{}`)}); !errors.Is(err, io.ErrClosedPipe) {
				t.Error(err)
			}
		})
	}
}

// connectBy is [connect] with a transport for HTTP.
func connectBy(t *testing.T, url string, h jsonrpc.Handler, by http.RoundTripper) *jsonrpc.Peer {
	t.Helper()
	return connectWith(t, &mcphttp.ClientOptions{URL: url, Token: "ann", Transport: by}, h)
}

func connectWith(t *testing.T, o *mcphttp.ClientOptions, h jsonrpc.Handler) *jsonrpc.Peer {
	t.Helper()
	c, err := mcphttp.NewClient(o)
	must.OK(t, err)
	peer := jsonrpc.NewPeer(c, h, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	ran := make(chan error, 1)
	go func() { ran <- peer.Run(context.Background()) }()
	t.Cleanup(func() {
		peer.Close()
		if err := wait(t, ran); err != nil {
			t.Error(err)
		}
	})
	return peer
}
