package mcphttp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// limit is how long a test waits for anything.
const limit = time.Minute

// site is a handler on loopback, as one principal uses it.
type site struct {
	t       *testing.T
	url     string
	handler *mcphttp.Handler
}

// open serves an engine to the principals ann and bob, whose tokens are their names.
func open(t *testing.T, e engine.Engine, so *codexserver.Options, change func(*mcphttp.Options)) *site {
	t.Helper()
	o := &mcphttp.Options{
		Principals: 2,
		Authenticate: func(r *http.Request) (mcphttp.Principal, error) {
			name, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if !ok || name != "ann" && name != "bob" && name != "eve" {
				return mcphttp.Principal{}, errors.New("unknown token")
			}
			return mcphttp.Principal{Name: name}, nil
		},
	}
	if change != nil {
		change(o)
	}
	h, err := mcphttp.New(principals(codexserver.New(e, so)), o)
	must.OK(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		server.CloseClientConnections()
		server.Close()
	})
	return &site{t, server.URL, h}
}

// reply is a response with its whole body.
type reply struct {
	status int
	header http.Header
	body   string
}

// wants fails the test unless the answer has this status, and this part in its body.
func (r reply) wants(t *testing.T, status int, part, format string, args ...any) {
	t.Helper()
	if r.status != status || !strings.Contains(r.body, part) {
		t.Errorf("%s: %+v, want %d with %q", fmt.Sprintf(format, args...), r, status, part)
	}
}

// headers are set on a request. The value "" removes a header.
type headers map[string]string

// request returns a request.
func (s *site) request(ctx context.Context, method, body string, more headers) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer ann")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range more {
		switch {
		case value == "":
			r.Header.Del(name)
		case name == "Host":
			r.Host = value
		default:
			r.Header.Set(name, value)
		}
	}
	return r
}

// do sends a request and reads its response to the end.
func (s *site) do(method, body string, more headers) reply {
	s.t.Helper()
	return s.send(method, body, more, true)
}

// send sends a request and reads its response. A stream of events may be left out: some do not end.
func (s *site) send(method, body string, more headers, events bool) reply {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	answer, err := http.DefaultClient.Do(s.request(ctx, method, body, more))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if !events && answer.Header.Get("Content-Type") == "text/event-stream" {
		return reply{answer.StatusCode, answer.Header, ""}
	}
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header, string(read)}
}

// post sends a message.
func (s *site) post(body string, more headers) reply {
	s.t.Helper()
	return s.do(http.MethodPost, body, more)
}

// sse is an open response of events.
type sse struct {
	t      *testing.T
	answer *http.Response
	lines  *bufio.Reader
	cancel context.CancelFunc
	lastID string
}

// stream sends a request whose response is a stream of events.
func (s *site) stream(method, body string, more headers) *sse {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	answer, err := http.DefaultClient.Do(s.request(ctx, method, body, more))
	if err != nil {
		cancel()
		s.t.Fatal(err)
	}
	v := &sse{t: s.t, answer: answer, lines: bufio.NewReader(answer.Body), cancel: cancel}
	s.t.Cleanup(v.close)
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		read, _ := io.ReadAll(answer.Body)
		s.t.Fatalf("%s: no stream: %s %s", body, answer.Status, read)
	}
	return v
}

// next returns the data of the next event, "" at the end.
func (v *sse) next() (data string) {
	v.t.Helper()
	for {
		line, err := v.lines.ReadString('\n')
		if err != nil {
			return ""
		}
		line = strings.TrimSuffix(line, "\n")
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			v.lastID = id
		}
		if d, ok := strings.CutPrefix(line, "data: "); ok {
			data = d
		}
		if line == "" && data != "" {
			return data
		}
	}
}

// until returns the first event that contains part.
func (v *sse) until(part string) string {
	v.t.Helper()
	for {
		data := v.next()
		if data == "" {
			v.t.Fatalf("the stream ended before %s", part)
		}
		if strings.Contains(data, part) {
			return data
		}
	}
}

func (v *sse) close() {
	v.cancel()
	v.answer.Body.Close()
}

// threadID finds the argument threadId, which a header mirrors.
var threadID = regexp.MustCompile(`"threadId":"([^"]*)"`)

// modern returns a request of 2026-07-28 and its headers. more are members of its params.
func modern(id, method, capabilities, more string) (body string, h headers) {
	if more != "" {
		more += ","
	}
	body = `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + more +
		`"_meta":{"progressToken":"p` + id + `","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + capabilities + `}}}`
	h = headers{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
	if method == "tools/call" {
		h["Mcp-Name"] = "codex"
		if id := threadID.FindStringSubmatch(more); id != nil {
			h["Mcp-Param-Thread-Id"] = id[1]
		}
	}
	return body, h
}

// initialize begins a session and returns its header.
func (s *site) initialize(more headers) headers {
	s.t.Helper()
	return s.initializeAs("2025-11-25", more)
}

// initializeAs begins a session with a version of MCP.
func (s *site) initializeAs(version string, more headers) headers {
	s.t.Helper()
	got := s.post(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`, more)
	id := got.header.Get("Mcp-Session-Id")
	if got.status != http.StatusOK || id == "" || !strings.Contains(got.body, `"protocolVersion":"`+version+`"`) {
		s.t.Fatalf("initialize: %+v", got)
	}
	h := headers{"Mcp-Session-Id": id, "MCP-Protocol-Version": version}
	maps.Copy(h, more)
	return h
}

// found returns the first text of this name in an answer.
func found(t *testing.T, body, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(body, `"`+name+`":"`)
	if !ok {
		t.Fatalf("no %s: %s", name, body)
	}
	text, _, _ := strings.Cut(rest, `"`)
	return text
}

// soon waits until a condition holds.
func (s *site) soon(what string, holds func() bool) {
	s.t.Helper()
	for until := time.Now().Add(limit); !holds(); {
		if time.Now().After(until) {
			s.t.Fatalf("it does not happen: %s", what)
		}
	}
}

// echo repeats the prompt.
var echo = engine.TurnFunc(func(_ context.Context, host engine.Host, in []protocol.InputItem) error {
	host.Emit(protocol.AgentMessage{Message: "heard " + in[0].Text})
	return nil
})

// asking asks for approval of one command and reports the decision.
var asking = engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
	out := host.Ask(ctx, approval.Command{CallID: "c", Command: []string{"git", "init"}, Cwd: "/work"})
	if out.Decision == elicit.Abort {
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: errors.New(out.ForModel())}
	}
	host.Emit(protocol.AgentMessage{Message: "decided " + string(out.Decision)})
	return nil
})

// stuck returns an engine whose turns run until they are interrupted. The channels receive when a turn has begun and ended.
func stuck() (e engine.Engine, began, ended chan string) {
	began, ended = make(chan string, 16), make(chan string, 16)
	return engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
		began <- in[0].Text
		<-ctx.Done()
		ended <- in[0].Text
		return ctx.Err()
	}), began, ended
}

// held returns an engine whose turns wait until goOn is closed.
func held(then engine.TurnFunc) (e engine.Engine, began, goOn chan struct{}) {
	began, goOn = make(chan struct{}, 1), make(chan struct{})
	return engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
		began <- struct{}{}
		select {
		case <-goOn:
			return then(ctx, host, in)
		case <-ctx.Done():
			return ctx.Err()
		}
	}), began, goOn
}

// wait returns the next value of a channel.
func wait[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(limit):
		t.Fatal("timed out")
		panic("unreachable")
	}
}

// principals returns how a handler opens the principals of a server.
func principals(s *codexserver.Server) func(context.Context, string) mcphttp.Service {
	return func(ctx context.Context, name string) mcphttp.Service { return s.Principal(ctx, name) }
}

const (
	hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	ping  = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
)

// local is a handler that is called directly, since a synctest bubble cannot wait for the network.
type local struct {
	t       *testing.T
	handler *mcphttp.Handler
}

func openLocal(t *testing.T, own func(*codexserver.Principal) mcphttp.Service, change func(*mcphttp.Options)) *local {
	t.Helper()
	o := &mcphttp.Options{
		MaxSessions:  1000,
		Authenticate: func(*http.Request) (mcphttp.Principal, error) { return mcphttp.Principal{Name: "ann"}, nil },
	}
	if change != nil {
		change(o)
	}
	server := codexserver.New(echo, nil)
	h := must.Get(mcphttp.New(func(ctx context.Context, name string) mcphttp.Service { return own(server.Principal(ctx, name)) }, o))(t)
	return &local{t, h}
}

// do sends a request and returns the response.
func (l *local) do(method string, more headers, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range more {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	l.handler.ServeHTTP(w, r)
	return w
}

// begin begins a session and returns its id.
func (l *local) begin() string {
	l.t.Helper()
	w := l.do(http.MethodPost, nil, hello)
	id := w.Header().Get("Mcp-Session-Id")
	if w.Code != http.StatusOK || id == "" || !strings.Contains(w.Body.String(), `"protocolVersion"`) {
		l.t.Fatalf("%d %s", w.Code, w.Body)
	}
	return id
}

func (l *local) close() {
	if err := l.handler.Close(); err != nil {
		l.t.Error(err)
	}
}

// itself returns a principal as its own service.
func itself(p *codexserver.Principal) mcphttp.Service { return p }

// TestIdleTimeout checks that a session ends when it was not used for the time, and not before.
func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLocal(t, itself, func(o *mcphttp.Options) { o.IdleTimeout = time.Hour })
		defer l.close()
		unused, used := l.begin(), l.begin()
		for _, step := range []struct {
			after            time.Duration
			status, sessions int
		}{
			{40 * time.Minute, http.StatusOK, 2},
			{59 * time.Minute, http.StatusOK, 1},
			{62 * time.Minute, http.StatusNotFound, 0},
		} {
			<-time.After(step.after)
			synctest.Wait()
			if w := l.do(http.MethodPost, headers{"Mcp-Session-Id": used}, ping); w.Code != step.status {
				t.Errorf("%d after %v, want %d: %s", w.Code, step.after, step.status, w.Body)
			}
			if n := l.handler.Load().Sessions; n != step.sessions {
				t.Errorf("%d sessions after %v, want %d", n, step.after, step.sessions)
			}
		}
		if w := l.do(http.MethodPost, headers{"Mcp-Session-Id": unused}, ping); w.Code != http.StatusNotFound {
			t.Errorf("unused: %d %s", w.Code, w.Body)
		}
	})
}

// worked is a service with work that no request waits for.
type worked struct {
	mcphttp.Service
	busy *atomic.Bool
}

func (w worked) Busy() bool { return w.busy.Load() }

// TestDrainWaitsForTheBackground checks that Drain waits for work for which no request waits.
func TestDrainWaitsForTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var busy atomic.Bool
		l := openLocal(t, func(p *codexserver.Principal) mcphttp.Service { return worked{p, &busy} }, nil)
		defer l.close()
		l.begin()
		busy.Store(true)
		late, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		if err := l.handler.Drain(late); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("work runs, and Drain returned %v", err)
		}
		time.AfterFunc(time.Hour, func() { busy.Store(false) })
		began := time.Now()
		if err := l.handler.Drain(t.Context()); err != nil || time.Since(began) < time.Hour {
			t.Errorf("Drain returned %v after %v", err, time.Since(began))
		}
	})
}
