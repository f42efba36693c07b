package mcphttp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// untouched is an engine that fails the test if a request reaches it.
func untouched(t *testing.T) engine.Engine {
	return engine.TurnFunc(func(_ context.Context, _ engine.Host, in []protocol.InputItem) error {
		t.Errorf("a turn ran: %q", protocol.TextOf(in))
		return nil
	})
}

// TestForgedRequests combines forged headers with each kind of request. No request may reach
// the engine, and the answers may only say that the request was refused.
func TestForgedRequests(t *testing.T) {
	s := open(t, untouched(t), nil, nil)
	session := s.initialize(nil)
	body, today := modern("1", "tools/call", "{}", call)
	ways := []struct {
		name, method, body string
		h                  headers
	}{
		{"today", "POST", body, today},
		{"session", "POST", codex("1", "p", ""), session},
		{"initialize", "POST", hello, nil},
		{"answer", "POST", `{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}`, session},
		{"GET", "GET", "", session},
		{"DELETE", "DELETE", "", session},
	}
	type forgery struct {
		status        int
		header, value string
	}
	var forgeries []forgery
	for _, token := range []string{"", "Bearer", "Bearer ", "Bearer mallory", "Bearer ANN", "Bearer ann, Bearer ann", "Basic ann", "ann", "Bearer\tann", "Bearer ann\x80", "Bearer  ann"} {
		forgeries = append(forgeries, forgery{401, "Authorization", token})
	}
	// There is room for two principals, ann and bob.
	for _, host := range []string{"evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "192.0.2.1", "[2001:db8::1]:80", "0.0.0.0", "[::]", "127.1", "2130706433", "localhost.", "127.0.0.1@evil.example"} {
		forgeries = append(forgeries, forgery{403, "Host", host})
	}
	for _, origin := range []string{"http://evil.example", "https://localhost.evil.example", "null", "file://", "http://127.0.0.1.evil.example", "http://localhost@evil.example", "http://user@localhost", "http://localhost/x", "http://localhost?x", "ftp://localhost", "localhost", "http://", "http://192.0.2.1", "chrome-extension://abc", "http://localhost:80 http://evil.example"} {
		forgeries = append(forgeries, forgery{403, "Origin", origin})
	}
	n := 0
	for _, way := range ways {
		for _, f := range forgeries {
			n++
			h := headers{}
			maps.Copy(h, way.h)
			h[f.header] = f.value
			got := s.do(way.method, way.body, h)
			if got.status != f.status || len(got.body) > 100 || strings.Contains(got.body, "jsonrpc") || got.header.Get("Mcp-Session-Id") != "" {
				t.Errorf("%s with %s %q: %+v", way.name, f.header, f.value, got)
			}
			if f.status == 401 && got.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s with %s %q: no WWW-Authenticate", way.name, f.header, f.value)
			}
		}
	}
	if n < 200 {
		t.Errorf("only %d requests", n)
	}
	if got := s.post(ping, session); got.status != 200 {
		t.Errorf("the session no longer works: %+v", got)
	}
	for _, origin := range []string{"http://localhost", "http://localhost:3000", "https://127.0.0.1:1", "http://[::1]:5"} {
		session["Origin"] = origin
		if got := s.post(ping, session); got.status != 200 {
			t.Errorf("%s: %+v", origin, got)
		}
	}
}

// TestPrincipalLimit checks that one principal too many is refused.
func TestPrincipalLimit(t *testing.T) {
	s := open(t, echo, nil, nil)
	for i, want := range []int{200, 200, 403} {
		body, h := modern("1", "server/discover", "{}", "")
		h["Authorization"] = "Bearer " + []string{"ann", "bob", "eve"}[i]
		if got := s.post(body, h); got.status != want {
			t.Errorf("principal %d: %+v", i+1, got)
		}
	}
}

// TestPrincipalRequired checks that there is no handler without Authenticate.
func TestPrincipalRequired(t *testing.T) {
	if _, err := mcphttp.New(nil, nil); err == nil {
		t.Error("a handler without options")
	}
	if _, err := mcphttp.New(nil, &mcphttp.Options{}); err == nil {
		t.Error("a handler without Authenticate")
	}
	s := open(t, untouched(t), nil, func(o *mcphttp.Options) {
		o.Authenticate = func(*http.Request) (mcphttp.Principal, error) { return mcphttp.Principal{}, nil }
	})
	body, h := modern("1", "tools/call", "{}", call)
	if got := s.post(body, h); got.status != 401 {
		t.Errorf("a principal without a name: %+v", got)
	}
}

// raw sends bytes unchanged. It returns the status lines of the answers until the server
// closes the connection.
func (s *site) raw(t *testing.T, parts ...string) (status []string) {
	t.Helper()
	u, err := url.Parse(s.url)
	must(t, err)
	c, err := net.Dial("tcp", u.Host)
	must(t, err)
	defer c.Close()
	must(t, c.SetDeadline(time.Now().Add(limit)))
	for _, p := range parts {
		if _, err := io.WriteString(c, strings.ReplaceAll(p, "HOST", u.Host)); err != nil {
			break // the server has closed it
		}
	}
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "HTTP/1.") {
			status = append(status, lines.Text())
		}
	}
	return status
}

const head = "POST / HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer ann\r\nContent-Type: application/json\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: codex\r\n"

// TestUnreadBodies sends the headers of a request whose body does not arrive, most of them refused. The
// server must close the connection.
func TestUnreadBodies(t *testing.T) {
	s := open(t, untouched(t), nil, func(o *mcphttp.Options) { o.BodyTimeout = 10 * time.Millisecond })
	for name, tt := range map[string]struct{ request, want string }{
		"a slow body":   {head + "Content-Length: 100\r\n\r\n{", " 408 "},
		"no token":      {"POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 100\r\n\r\n{", " 401 "},
		"another host":  {"POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 100\r\n\r\n{", " 403 "},
		"another type":  {"POST / HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer ann\r\nContent-Length: 100\r\n\r\n{", " 415 "},
		"PUT":           {"PUT / HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer ann\r\nContent-Length: 100\r\n\r\n{", " 405 "},
		"GET":           {"GET / HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer ann\r\nMcp-Session-Id: x\r\nContent-Length: 100\r\n\r\n{", " 400 "},
		"GET in chunks": {"GET / HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer ann\r\nMcp-Session-Id: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{", " 400 "},
		"DELETE":        {"DELETE / HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer ann\r\nMcp-Session-Id: x\r\nContent-Length: 100\r\n\r\n{", " 400 "},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.raw(t, tt.request); len(got) != 1 || !strings.Contains(got[0], tt.want) {
				t.Errorf("%q, want%s", got, tt.want)
			}
		})
	}
}

// readDeadline records the last read deadline that a handler has set.
type readDeadline struct {
	http.ResponseWriter
	last chan time.Time
}

// SetReadDeadline is used by [http.ResponseController].
func (w *readDeadline) SetReadDeadline(until time.Time) error {
	select {
	case <-w.last:
	default:
	}
	w.last <- until
	return nil
}

// Unwrap is used by [http.ResponseController].
func (w *readDeadline) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// TestStreamsHaveNoReadDeadline checks that an open stream has no read deadline, and that the
// body of a refused request has one.
func TestStreamsHaveNoReadDeadline(t *testing.T) {
	e, began, ended := stuck()
	s := open(t, e, nil, nil)
	deadlines := make(chan *readDeadline, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := &readDeadline{w, make(chan time.Time, 1)}
		deadlines <- d
		s.handler.ServeHTTP(d, r)
	}))
	defer server.Close()
	s.url = server.URL
	session := s.initialize(nil)
	wait(t, deadlines)
	standing := s.stream(http.MethodGet, "", session)
	if until := wait(t, wait(t, deadlines).last); !until.IsZero() {
		t.Errorf("GET must end at %v", until)
	}
	body, h := modern("1", "tools/call", `{"extensions":{"io.github.codexmcp/events":{}}}`, call)
	v := s.stream(http.MethodPost, body, h)
	wait(t, began)
	if until := wait(t, wait(t, deadlines).last); !until.IsZero() {
		t.Errorf("POST must end at %v", until)
	}
	v.close()
	wait(t, ended)
	standing.close()
	s.post(body, headers{"Authorization": "Bearer mallory"})
	if until := wait(t, wait(t, deadlines).last); until.IsZero() {
		t.Error("a refused request has no deadline")
	}
}

// TestDuplicateHeaders sends each header that is compared with the body twice.
func TestDuplicateHeaders(t *testing.T) {
	s := open(t, untouched(t), nil, nil)
	session := s.initialize(nil)
	body, today := modern("1", "tools/call", "{}", call)
	for name, values := range map[string][]string{
		"Mcp-Method":           {"tools/call", "tools/list"},
		"Mcp-Name":             {"codex", "codex-list"},
		"Mcp-Protocol-Version": {"2026-07-28", "2025-11-25"},
		"Mcp-Session-Id":       {session["Mcp-Session-Id"], "other"},
		"Content-Type":         {"application/json", "text/plain"},
		"Content-Encoding":     {"", "gzip"},
		"Last-Event-ID":        {"1-1", "1-2"},
		"Authorization":        {"Bearer ann", "Bearer bob"},
		"Origin":               {"http://localhost", "http://evil.example"},
	} {
		for _, way := range []struct {
			body string
			h    headers
		}{{body, today}, {codex("1", "p", ""), session}} {
			for _, order := range [][]string{values, {values[1], values[0]}} {
				r := s.request(t.Context(), http.MethodPost, way.body, way.h)
				r.Header[http.CanonicalHeaderKey(name)] = order
				answer, err := http.DefaultClient.Do(r)
				must(t, err)
				answer.Body.Close()
				if answer.StatusCode/100 != 4 {
					t.Errorf("%s %q: %s", name, order, answer.Status)
				}
			}
		}
	}
	// Duplicate members of the body are refused too.
	for _, more := range []string{`"name":"codex-list","name":"codex","arguments":{"prompt":"p"}`, `"name":"codex","name":"codex-list","arguments":{"prompt":"p"}`} {
		body, h := modern("1", "tools/call", "{}", more)
		for _, name := range []string{"codex", "codex-list"} {
			h["Mcp-Name"] = name
			if got := s.post(body, h); !strings.Contains(got.body, `"error"`) {
				t.Errorf("%s as %s: %+v", more, name, got)
			}
		}
	}
}

// TestLongBodies checks that a message that is too long is refused before it is read, and
// that few long messages are read at the same time.
func TestLongBodies(t *testing.T) {
	t.Parallel()
	s := open(t, untouched(t), nil, func(o *mcphttp.Options) { o.MaxBody = 3 << 20 })
	if got := s.raw(t, head+"Content-Length: 999999999999\r\n\r\n{"); len(got) != 1 || !strings.Contains(got[0], " 413 ") {
		t.Errorf("a long length: %q", got)
	}
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 1<<20, strings.Repeat(" ", 1<<20))
	for range 5 { // each gives back its place among the long ones, of which there are fewer
		if got := s.raw(t, head+"Transfer-Encoding: chunked\r\n\r\n", chunk, chunk, chunk, chunk); len(got) > 1 || len(got) == 1 && !strings.Contains(got[0], " 413 ") {
			t.Errorf("a long body: %q", got)
		}
	}
	body, h := modern("1", "server/discover", "{}", "")
	h["Authorization"] = "Bearer mallory"
	if got := s.post(body+strings.Repeat(" ", 1<<20), h); got.status != 401 {
		t.Errorf("without a token: %+v", got)
	}
	h["Authorization"] = "Bearer ann"
	if got := s.post(body+strings.Repeat(" ", 2<<20), h); got.status != 200 {
		t.Errorf("a long message: %+v", got)
	}
}

// TestManyStreams checks the limit of a principal's open requests, and that it does not
// affect other principals.
func TestManyStreams(t *testing.T) {
	e, began, ended := stuck()
	s := open(t, e, nil, func(o *mcphttp.Options) { o.MaxStreams = 8 })
	var streams []*sse
	for i := range 8 {
		body, h := modern(fmt.Sprint(i), "tools/call", `{"extensions":{"io.github.codexmcp/events":{}}}`, call)
		streams = append(streams, s.stream(http.MethodPost, body, h))
		wait(t, began)
	}
	body, h := modern("9", "server/discover", "{}", "")
	if got := s.post(body, h); got.status != 429 || got.header.Get("Retry-After") == "" {
		t.Errorf("one more: %+v", got)
	}
	h["Authorization"] = "Bearer bob"
	if got := s.post(body, h); got.status != 200 {
		t.Errorf("another principal: %+v", got)
	}
	streams[0].until(`"codex/event"`)
	streams[0].close() // ends its turn
	wait(t, ended)
	h["Authorization"] = "Bearer ann"
	s.soon("a closed stream no longer counts", func() bool { return s.post(body, h).status == 200 })
}
