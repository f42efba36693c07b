package mcphttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

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

// TestClientMembersInAnyOrder forwards answers whose members are in another order than ours.
func TestClientMembersInAnyOrder(t *testing.T) {
	const long = `{"content":[{"type":"text","text":"it is\n","id":7}]}`
	for _, answer := range []string{
		`{"result":` + long + `,"id":ID,"jsonrpc":"2.0"}`,
		`{"result":` + long + `,"jsonrpc":"2.0","id":ID}`,
		`{"id":ID,"result":` + long + `,"jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","id":ID,"result":` + long + `}`,
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
		{"id: 1\nretry: 1000\ndata: \n\n", time.Second},
		{"id: 1\nretry: 2500\ndata: \n\n", 2500 * time.Millisecond},
		{"id:1\nretry:7000\ndata:\n\n", 7 * time.Second},
		{"retry: 3000\n\nid: 1\ndata: \n\n", 3 * time.Second},
		{"id: 1\ndata: \n\n", time.Second},
		{"id: 1\nretry: soon\ndata: \n\n", time.Second},
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
					if got := time.Since(at); got != tt.want {
						t.Errorf("%q: resumed after %v, want %v", tt.primed, got, tt.want)
					}
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
			must(t, <-results)
		}
		if n := s.started.Load(); n != 2 {
			t.Errorf("%d sessions", n)
		}
	})
}

// TestClientOpenQuestionKeepsItsSession restarts the server while the client has a question. No
// session takes the place of the old one before the client has answered, because the answer
// could count for a question of the new session.
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
			must(t, err)
			for range 12 { // more than may wait to be read
				must(t, c.Write(t.Context(), [][]byte{[]byte(`{"id":1}`), []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)}))
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
	must(t, err)
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
