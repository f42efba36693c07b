package mcphttp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/testenv"
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
	s.post(ping, session).wants(t, 200, "", "the session no longer works")
	for _, origin := range []string{"http://localhost", "http://localhost:3000", "https://127.0.0.1:1", "http://[::1]:5"} {
		session["Origin"] = origin
		s.post(ping, session).wants(t, 200, "", "%s", origin)
	}
}

// TestPrincipalLimit checks that one principal too many is refused.
func TestPrincipalLimit(t *testing.T) {
	s := open(t, echo, nil, nil)
	for i, want := range []int{200, 200, 403} {
		body, h := modern("1", "server/discover", "{}", "")
		h["Authorization"] = "Bearer " + []string{"ann", "bob", "eve"}[i]
		s.post(body, h).wants(t, want, "", "principal %d", i+1)
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
	s.post(body, h).wants(t, 401, "", "a principal without a name")
}

// raw sends bytes unchanged. It returns the status lines of the answers until the server closes the connection.
func (s *site) raw(t *testing.T, parts ...string) (status []string) {
	t.Helper()
	u := must.Get(url.Parse(s.url))(t)
	c := must.Get(net.Dial("tcp", u.Host))(t)
	defer c.Close()
	must.OK(t, c.SetDeadline(time.Now().Add(limit)))
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
		"Mcp-Method": {"tools/call", "tools/list"}, "Mcp-Name": {"codex", "codex-list"},
		"Mcp-Protocol-Version": {"2026-07-28", "2025-11-25"}, "Mcp-Session-Id": {session["Mcp-Session-Id"], "other"},
		"Content-Type": {"application/json", "text/plain"}, "Content-Encoding": {"", "gzip"}, "Last-Event-ID": {"1-1", "1-2"},
		"Authorization": {"Bearer ann", "Bearer bob"}, "Origin": {"http://localhost", "http://evil.example"},
	} {
		for _, way := range []struct {
			body string
			h    headers
		}{{body, today}, {codex("1", "p", ""), session}} {
			for _, order := range [][]string{values, {values[1], values[0]}} {
				r := s.request(t.Context(), http.MethodPost, way.body, way.h)
				r.Header[http.CanonicalHeaderKey(name)] = order
				answer := must.Get(http.DefaultClient.Do(r))(t)
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
	s.post(body+strings.Repeat(" ", 1<<20), h).wants(t, 401, "", "without a token")
	h["Authorization"] = "Bearer ann"
	s.post(body+strings.Repeat(" ", 2<<20), h).wants(t, 200, "", "a long message")
}

// TestManyStreams checks the limit of a principal's open requests, and that it does not affect other principals.
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
	s.post(body, h).wants(t, 200, "", "another principal")
	streams[0].until(`"codex/event"`)
	streams[0].close() // ends its turn
	wait(t, ended)
	h["Authorization"] = "Bearer ann"
	s.soon("a closed stream no longer counts", func() bool { return s.post(body, h).status == 200 })
}

// archive is an engine that has a rollout of every thread.
type archive struct {
	engine.Engine
	path string
}

// Find implements [engine.Resumer].
func (e archive) Find(_ context.Context, id string) (engine.Saved, error) {
	return engine.Saved{ID: id, File: e.path}, nil
}

// Resume implements [engine.Resumer].
func (e archive) Resume(ctx context.Context, _ engine.Saved, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	return e.Start(ctx, cfg, host)
}

// TestSavedThreadsAreNotShown reads a thread of which only the rollout exists, in both eras: it may be another principal's.
func TestSavedThreadsAreNotShown(t *testing.T) {
	const id = "00000000-0000-7000-8000-000000000001"
	path := filepath.Join(t.TempDir(), "rollout-2025-01-01T00-00-00-"+id+".jsonl")
	rollout := `{"timestamp":"2025-01-01T00:00:00Z","type":"session_meta","payload":{"id":"` + id + `","cwd":"/","timestamp":"2025-01-01T00:00:00Z"}}` + "\n" +
		`{"timestamp":"2025-01-01T00:00:00Z","type":"event_msg","payload":{"type":"user_message","message":"hello"}}` + "\n"
	must.OK(t, os.WriteFile(path, []byte(rollout), 0o600))
	s := open(t, archive{echo, path}, nil, nil)
	params := `"name":"codex-show","arguments":{"threadId":"` + id + `","what":"transcript"}`
	body, h := modern("2", "tools/call", "{}", params)
	h["Mcp-Name"] = "codex-show"
	for _, got := range []reply{s.post(body, h), s.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{`+params+`}}`, s.initialize(nil))} {
		if strings.Contains(got.body, "hello") || !strings.Contains(got.body, "no conversation") {
			t.Errorf("%+v", got)
		}
	}
}

// TestEventsBelongToTheirSession tries to resume a stream of another session.
func TestEventsBelongToTheirSession(t *testing.T) {
	e, began, _ := stuck()
	s := open(t, e, nil, nil)
	ann := s.initialize(nil)
	v := s.stream(http.MethodPost, codex("1", "secret", ""), ann)
	wait(t, began)
	v.until("task_started")
	for _, h := range []headers{s.initialize(nil), s.initialize(headers{"Authorization": "Bearer bob"})} {
		h["Last-Event-ID"] = v.lastID
		s.do(http.MethodGet, "", h).wants(t, 400, "not kept", "a stream of another session")
	}
}

// TestSessionIDsAreTheServers checks that a client cannot choose a session id.
func TestSessionIDsAreTheServers(t *testing.T) {
	s := open(t, echo, nil, nil)
	if got := s.post(hello, headers{"Mcp-Session-Id": "chosen"}); got.status != 404 || got.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("%+v", got)
	}
	if a, b := s.initialize(nil)["Mcp-Session-Id"], s.initialize(nil)["Mcp-Session-Id"]; a == b || len(a) < 43 {
		t.Errorf("sessions %q and %q", a, b)
	}
}

const (
	asks  = `{"elicitation":{}}`
	tasks = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
)

// TestStrangersWork has a principal try to use the open work of another one, of both eras, in every way. It does not
// exist for that one, and its questions stay open.
func TestStrangersWork(t *testing.T) {
	s := open(t, asking, &codexserver.Options{Home: testenv.Home(t), Tasks: codexserver.TaskOptions{Grace: -1}}, nil)
	today := func(who, method, name, capabilities, params string) string {
		body, h := modern("1", method, capabilities, params)
		h["Authorization"], h["Mcp-Name"] = "Bearer "+who, name
		return s.post(body, h).body
	}
	const work = `"name":"codex","arguments":{"prompt":"go"`
	session, stranger := s.initialize(nil), s.initialize(headers{"Authorization": "Bearer bob"})
	v := s.stream(http.MethodPost, codex("1", "go", ""), session)
	v.until(`"elicitation/create"`)
	back := s.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{`+work+`,"background":true}}}`, session).body
	state := found(t, today("ann", "tools/call", "codex", asks, work+`}`), "requestState")
	id := found(t, today("ann", "tools/call", "codex", tasks, work+`}`), "taskId")
	later := today("ann", "tools/call", "codex", asks, work+`,"background":true}`)

	stolen := headers{"Mcp-Session-Id": session["Mcp-Session-Id"], "Authorization": "Bearer bob"}
	for method, body := range map[string]string{http.MethodPost: `{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}`, http.MethodGet: "", http.MethodDelete: ""} {
		s.do(method, body, stolen).wants(t, http.StatusNotFound, "", "%s in the session", method)
	}
	const yes = `"inputResponses":{"q1":{"action":"accept"}}`
	for name, got := range map[string]string{
		"tasks/get":    today("bob", "tasks/get", id, tasks, `"taskId":"`+id+`"`),
		"tasks/update": today("bob", "tasks/update", id, tasks, `"taskId":"`+id+`",`+yes),
		"tasks/cancel": today("bob", "tasks/cancel", id, tasks, `"taskId":"`+id+`"`),
		"requestState": today("bob", "tools/call", "codex", asks, work+`},"requestState":"`+state+`",`+yes),
	} {
		if !strings.Contains(got, `"error"`) {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, thread := range []string{found(t, back, "threadId"), found(t, later, "threadId")} {
		for _, tool := range []struct{ name, arguments, unknown string }{
			{"codex-wait", `"threadIds":[%q],"seconds":0`, `"status":"unknown"`},
			{"codex-reply", `"threadId":%q,"prompt":"x"`, "no conversation"},
			{"codex-interrupt", `"threadId":%q`, "no conversation"},
			{"codex-show", `"threadId":%q,"what":"transcript"`, "no conversation"},
		} {
			params := fmt.Sprintf(`"name":%q,"arguments":{%s}`, tool.name, fmt.Sprintf(tool.arguments, thread))
			got := today("bob", "tools/call", tool.name, asks, params) + s.post(`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{`+params+`}}`, stranger).body
			if strings.Count(got, tool.unknown) < 2 {
				t.Errorf("%s: %s", tool.name, got)
			}
		}
	}
	s.post(`{"jsonrpc":"2.0","id":0,"result":{"action":"decline"}}`, session)
	if got := v.until(`"result"`); !strings.Contains(got, "decided denied") {
		t.Errorf("the call: %s", got)
	}
}

const page = "https://app.example.com"

// shares fails the test unless only that origin may read the answer, without credentials. No
// origin may read it if origin is "".
func shares(t *testing.T, name string, h http.Header, origin string) {
	t.Helper()
	if got := h.Values("Access-Control-Allow-Origin"); strings.Join(got, "|") != origin {
		t.Errorf("%s: Access-Control-Allow-Origin %q, want %q", name, got, origin)
	}
	if h.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%s shares credentials", name)
	}
}

// TestPreflight checks that preflights of allowed origins are answered without a token.
func TestPreflight(t *testing.T) {
	s := open(t, untouched(t), nil, func(o *mcphttp.Options) { o.Origins = []string{page, "https://other.example.com"} })
	preflight := func(more headers) headers {
		h := headers{"Authorization": "", "Origin": page, "Access-Control-Request-Method": "POST", "Accept": "*/*", "Content-Type": ""}
		maps.Copy(h, more)
		return h
	}
	got := s.do(http.MethodOptions, "", preflight(headers{"Access-Control-Request-Headers": "authorization,content-type,mcp-protocol-version,Mcp-Param-Thread,x-evil,mcp-a b,mcp-\u00e9"}))
	shares(t, "preflight", got.header, page)
	for name, want := range map[string]string{
		"Access-Control-Allow-Methods":  "POST, GET, DELETE",
		"Access-Control-Allow-Headers":  "Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id, mcp-protocol-version, mcp-param-thread",
		"Access-Control-Max-Age":        "600",
		"Access-Control-Expose-Headers": "Mcp-Session-Id, WWW-Authenticate, Retry-After",
		"Vary":                          "Origin",
	} {
		if got.header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.header.Get(name), want)
		}
	}
	if got.status != http.StatusNoContent || got.body != "" {
		t.Errorf("preflight: %+v", got)
	}
	for name, tt := range map[string]struct {
		h      headers
		status int
		origin string
	}{
		"the other origin":          {preflight(headers{"Origin": "https://other.example.com"}), 204, "https://other.example.com"},
		"a foreign origin":          {preflight(headers{"Origin": "https://evil.example"}), 403, ""},
		"a subdomain":               {preflight(headers{"Origin": "https://x.app.example.com"}), 403, ""},
		"a longer name":             {preflight(headers{"Origin": page + ".evil.example"}), 403, ""},
		"another scheme":            {preflight(headers{"Origin": "http://app.example.com"}), 403, ""},
		"another port":              {preflight(headers{"Origin": page + ":444"}), 403, ""},
		"another case":              {preflight(headers{"Origin": "https://APP.example.com"}), 403, ""},
		"null":                      {preflight(headers{"Origin": "null"}), 403, ""},
		"a star":                    {preflight(headers{"Origin": "*"}), 403, ""},
		"this machine":              {preflight(headers{"Origin": "http://localhost"}), 403, ""},
		"another host":              {preflight(headers{"Host": "evil.example"}), 403, ""},
		"no origin":                 {preflight(headers{"Origin": ""}), 401, ""},
		"no preflight":              {preflight(headers{"Access-Control-Request-Method": ""}), 401, page},
		"a request without a token": {headers{"Authorization": "", "Origin": page}, 401, page},
	} {
		method := http.MethodOptions
		if name == "a request without a token" {
			method = http.MethodPost
		}
		got := s.do(method, "", tt.h)
		got.wants(t, tt.status, "", "%s", name)
		shares(t, name, got.header, tt.origin)
	}
	many := strings.Repeat("mcp-x,", 1000)
	if got := s.do(http.MethodOptions, "", preflight(headers{"Access-Control-Request-Headers": many})); len(got.header.Get("Access-Control-Allow-Headers")) > 1000 {
		t.Errorf("%d bytes of headers", len(got.header.Get("Access-Control-Allow-Headers")))
	}
}

// TestSharedAnswers checks that a page may read the answer to its request.
func TestSharedAnswers(t *testing.T) {
	s := open(t, echo, nil, func(o *mcphttp.Options) { o.Origins = []string{page} })
	body, h := modern("1", "tools/list", "{}", "")
	for _, tt := range []struct{ origin, want string }{{page, page}, {"", ""}} {
		h["Origin"] = tt.origin
		got := s.post(body, h)
		shares(t, "origin "+tt.origin, got.header, tt.want)
		if got.status != 200 || got.header.Get("Vary") != "Origin" {
			t.Errorf("%q: %+v", tt.origin, got)
		}
	}
	// By default pages of this machine may send requests, but not read answers.
	s = open(t, echo, nil, nil)
	h["Origin"] = "http://localhost:3000"
	if got := s.post(body, h); got.status != 200 {
		t.Errorf("a page of this machine: %+v", got)
	} else {
		shares(t, "this machine", got.header, "")
	}
}

// TestRefusals checks that the error of Authenticate sets the answer.
func TestRefusals(t *testing.T) {
	var refusal error
	s := open(t, untouched(t), nil, func(o *mcphttp.Options) {
		o.Challenge, o.Metadata = `Bearer realm="x"`, "https://example.com/meta"
		o.Authenticate = func(*http.Request) (mcphttp.Principal, error) { return mcphttp.Principal{}, refusal }
	})
	const rest = `scope="codex:run codex:approve codex:read", resource_metadata="https://example.com/meta"`
	for name, tt := range map[string]struct {
		err              error
		status           int
		challenge, retry string
		words            string
	}{
		"any error":   {errors.New("secret"), 401, `Bearer realm="x", ` + rest, "", "a valid token is required\n"},
		"no token":    {&mcphttp.Refusal{Err: errors.New("secret")}, 401, `Bearer realm="x", ` + rest, "", "a valid token is required\n"},
		"a bad token": {&mcphttp.Refusal{Code: "invalid_token"}, 401, `Bearer realm="x", error="invalid_token", ` + rest, "", "a valid token is required\n"},
		"too many":    {&mcphttp.Refusal{Status: 429, RetryAfter: 1, Words: "slowly"}, 429, "", "1", "slowly\n"},
		"later":       {&mcphttp.Refusal{Status: 503, RetryAfter: 1500 * time.Millisecond}, 503, "", "2", "a valid token is required\n"},
		"no name":     {nil, 401, `Bearer realm="x", ` + rest, "", "a valid token is required\n"},
	} {
		refusal = tt.err
		body, h := modern("1", "tools/call", "{}", call)
		got := s.post(body, h)
		if got.status != tt.status || got.header.Get("WWW-Authenticate") != tt.challenge || got.header.Get("Retry-After") != tt.retry || got.body != tt.words {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
