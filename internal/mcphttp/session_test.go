package mcphttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func codex(id, prompt, meta string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":%q},"_meta":{%s}}}`, id, prompt, meta)
}

// TestSession uses a session from initialize to DELETE.
func TestSession(t *testing.T) {
	s := open(t, asking, nil, nil)
	h := s.initialize(nil)
	if got := s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, h); got.status != 202 || got.body != "" {
		t.Errorf("initialized: %+v", got)
	}
	s.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, h).wants(t, 200, `"codex-reply"`, "tools")
	s.post(`{"jsonrpc":"2.0","id":1,"method":"no/such"}`, h).wants(t, 200, `-32601`, "unknown method")
	// The question is sent on the stream of its call, although the client also reads a GET.
	standing := s.stream(http.MethodGet, "", h)
	v := s.stream(http.MethodPost, codex(`"a"`, "go", `"progressToken":"tok"`), h)
	v.until(`"progressToken":"tok"`)
	question := v.until(`"elicitation/create"`)
	if !strings.Contains(question, `"id":0`) {
		t.Fatalf("question %s", question)
	}
	s.post(`{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"decision":"approved"}}}`, h).wants(t, 202, "", "the answer")
	if answer := v.until(`"result"`); !strings.Contains(answer, "decided approved") || !strings.Contains(answer, `"id":"a"`) {
		t.Errorf("answer %s", answer)
	}
	must.Equal(t, "after the answer", "", v.next())
	s.do(http.MethodDelete, "", h).wants(t, 204, "", "DELETE")
	must.Equal(t, "on the standing stream", "", standing.next())
	for method, body := range map[string]string{http.MethodPost: ping, http.MethodGet: "", http.MethodDelete: ""} {
		s.do(method, body, h).wants(t, 404, "", "%s after the end", method)
	}
}

// TestSessionRefusals sends messages that a session refuses.
func TestSessionRefusals(t *testing.T) {
	s := open(t, echo, nil, nil)
	mine := s.initialize(nil)
	with := func(name, value string) headers {
		h := headers{}
		maps.Copy(h, mine)
		h[name] = value
		return h
	}
	for _, tt := range []struct {
		name, method, body string
		h                  headers
		status             int
		part               string
	}{
		{"works", "POST", ping, mine, 200, `"result":{}`},
		{"no version header", "POST", ping, with("MCP-Protocol-Version", ""), 200, `"result":{}`},
		{"another principal", "POST", ping, with("Authorization", "Bearer bob"), 404, "no such session"},
		{"another principal's GET", "GET", "", with("Authorization", "Bearer bob"), 404, "no such session"},
		{"another principal's DELETE", "DELETE", "", with("Authorization", "Bearer bob"), 404, "no such session"},
		{"a guessed session", "POST", ping, with("Mcp-Session-Id", "guess"), 404, "no such session"},
		{"no session", "POST", ping, with("Mcp-Session-Id", ""), 400, `-32602`},
		{"a notification without a session", "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, with("Mcp-Session-Id", ""), 400, `-32600`},
		{"unknown version", "POST", ping, with("MCP-Protocol-Version", "1900-01-01"), 400, "unknown version"},
		{"unknown version of a GET", "GET", "", with("MCP-Protocol-Version", "1900-01-01"), 400, "unknown version"},
		{"GET without a session", "GET", "", with("Mcp-Session-Id", ""), 405, "POST"},
		{"DELETE without a session", "DELETE", "", with("Mcp-Session-Id", ""), 405, "POST"},
		{"PUT", "PUT", ping, mine, 405, "POST"},
		{"GET without events", "GET", "", with("Accept", "application/json"), 406, "Accept"},
		{"POST without events", "POST", ping, with("Accept", "application/json"), 406, "Accept"},
		{"GET with an unknown event", "GET", "", with("Last-Event-ID", "9-1"), 400, "not kept"},
		{"GET with a broken event", "GET", "", with("Last-Event-ID", "x"), 400, "not kept"},
		{"GET with an event in another spelling", "GET", "", with("Last-Event-ID", "+0-00"), 400, "not kept"},
		{"a batch", "POST", "[" + ping + "]", mine, 400, "batches are not accepted"},
		{"not JSON", "POST", `{"jsonrpc"`, mine, 400, `-32700`},
		{"two messages", "POST", ping + ping, mine, 400, `-32700`},
		{"not UTF-8", "POST", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}", mine, 400, `-32700`},
		{"a member twice", "POST", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, mine, 400, `twice`},
		{"an id that is an object", "POST", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, mine, 400, `-32600`},
		{"a number", "POST", `5`, mine, 400, `-32600`},
		{"neither", "POST", `{"jsonrpc":"2.0","id":1}`, mine, 400, `-32600`},
		{"both", "POST", `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, mine, 400, `-32600`},
		{"an empty body", "POST", ``, mine, 400, `-32700`},
		{"another type", "POST", ping, with("Content-Type", "text/plain"), 415, "application/json"},
		{"a coded body", "POST", ping, with("Content-Encoding", "gzip"), 415, "Content-Encoding"},
		{"a method of 2025 that starts a conversation", "POST", `{"jsonrpc":"2.0","id":1,"method":"newConversation","params":{"sandbox":"danger-full-access","approvalPolicy":"never"}}`, mine, 200, "-32601"},
		{"initialize again", "POST", hello, mine, 200, "more than once"},
	} {
		s.do(tt.method, tt.body, tt.h).wants(t, tt.status, tt.part, "%s", tt.name)
	}
}

// TestResume breaks the connection of a call before its answer, and resumes its stream.
func TestResume(t *testing.T) {
	e, _, goOn := held(echo)
	s := open(t, e, nil, nil)
	h := s.initialize(nil)
	v := s.stream(http.MethodPost, codex("5", "hello", ""), h)
	first := v.next()
	at := v.lastID
	second := v.until("task_started")
	v.close()
	// The call continues, although no client reads its stream.
	close(goOn)
	h["Last-Event-ID"] = at
	again := s.stream(http.MethodGet, "", h)
	for _, want := range []string{"task_started", "heard hello", `"result"`} {
		if got := again.until(want); got == first {
			t.Errorf("%s was sent again", first)
		} else if want == "task_started" && got != second {
			t.Errorf("%s, and before %s", got, second)
		}
	}
	must.Equal(t, "after the answer", "", again.next())
}

// TestSessionLimit checks that a further session ends the one that was idle for longest, and never one in use.
func TestSessionLimit(t *testing.T) {
	e, began, _ := stuck()
	s := open(t, e, nil, func(o *mcphttp.Options) { o.MaxSessions = 2 })
	busy, idle := s.initialize(nil), s.initialize(nil)
	s.stream(http.MethodPost, codex("1", "work", ""), busy)
	wait(t, began)
	third := s.initialize(nil)
	ping := `{"jsonrpc":"2.0","id":9,"method":"ping"}`
	for _, tt := range []struct {
		h      headers
		status int
	}{{busy, 200}, {idle, 404}, {third, 200}} {
		s.post(ping, tt.h).wants(t, tt.status, "", "of three sessions")
	}
	s.stream(http.MethodPost, codex("1", "work", ""), third)
	wait(t, began)
	s.post(hello, nil).wants(t, 429, "", "one more")
}

// TestCancelledRequestEndsItsStream cancels a request by a notification.
func TestCancelledRequestEndsItsStream(t *testing.T) {
	e, began, ended := stuck()
	s := open(t, e, nil, nil)
	h := s.initialize(nil)
	v := s.stream(http.MethodPost, codex("1", "work", ""), h)
	wait(t, began)
	s.post(codex("1", "again", ""), h).wants(t, 400, "in use", "the same id")
	s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, h)
	wait(t, ended)
	for data := v.next(); data != ""; data = v.next() {
		if strings.Contains(data, `"result"`) {
			t.Errorf("a cancelled request was answered: %s", data)
		}
	}
}

// TestDrain checks that running work ends, that answers to its questions are accepted, and that new work is refused.
func TestDrain(t *testing.T) {
	s := open(t, asking, nil, nil)
	h := s.initialize(nil)
	v := s.stream(http.MethodPost, codex("1", "work", ""), h)
	v.until(`"elicitation/create"`)
	drained := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	go func() { drained <- s.handler.Drain(ctx) }()
	s.soon("new requests are refused", func() bool { return s.post(`{"jsonrpc":"2.0","id":2,"method":"ping"}`, h).status == 503 })
	body, mh := modern("3", "server/discover", "{}", "")
	s.post(body, mh).wants(t, 503, "", "a request of today")
	s.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, nil).wants(t, 503, "", "a new session")
	s.post(`{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"decision":"approved"}}}`, h).wants(t, 202, "", "the answer")
	v.until("decided approved")
	must.OK(t, wait(t, drained))
}

// TestBatch sends a batch with a question, and answers in another one.
func TestBatch(t *testing.T) {
	s := open(t, asking, nil, nil)
	h := s.initializeAs("2025-03-26", nil)
	if got := s.post(`[{"jsonrpc":"2.0","method":"notifications/initialized"}]`, h); got.status != 202 || got.body != "" {
		t.Errorf("notifications only: %+v", got)
	}
	v := s.stream(http.MethodPost, `[{"jsonrpc":"2.0","id":1,"method":"tools/list"},`+codex(`"a"`, "go", `"progressToken":"tok"`)+`,{"jsonrpc":"2.0","id":3,"method":"no/such"}]`, h)
	var first []string
	for question := ""; question == "" || len(first) < 2; { // they come in any order
		switch data := v.next(); {
		case strings.Contains(data, `"elicitation/create"`):
			question = data
		case strings.Contains(data, `"tools":`):
			first = append(first, "list")
		case strings.Contains(data, `-32601`):
			first = append(first, "none")
		case data == "":
			t.Fatalf("the stream ended without a question, or with the answers %v", first)
		}
	}
	answer := `{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"decision":"approved"}}}`
	ping := s.post("["+answer+`,{"jsonrpc":"2.0","id":4,"method":"ping"}]`, h)
	if ping.status != 200 || !strings.Contains(ping.body, `"id":4`) {
		t.Errorf("a batch with an answer: %+v", ping)
	}
	if got := v.until(`"result"`); !strings.Contains(got, "decided approved") || !strings.Contains(got, `"id":"a"`) {
		t.Errorf("%s", got)
	}
	slices.Sort(first)
	if rest := v.next(); rest != "" || fmt.Sprint(first) != "[list none]" {
		t.Errorf("answers %v, then %q", first, rest)
	}
	s.post(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, h).wants(t, 200, `"result":{}`, "the ids are free again")
	s.do(http.MethodDelete, "", h).wants(t, 204, "", "DELETE")
}

// TestBatchCancel cancels the call of a batch. The stream ends with the other answers.
func TestBatchCancel(t *testing.T) {
	s := open(t, asking, nil, nil)
	h := s.initializeAs("2025-03-26", nil)
	v := s.stream(http.MethodPost, "["+codex(`"a"`, "go", "")+`,{"jsonrpc":"2.0","id":3,"method":"ping"}]`, h)
	v.until(`"elicitation/create"`)
	s.post(`[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}]`, h).wants(t, 202, "", "the cancellation")
	for data := v.next(); data != ""; data = v.next() {
		if strings.Contains(data, `"id":"a"`) {
			t.Errorf("answered: %s", data)
		}
	}
}

// TestBatchRefusals sends batches of which nothing may be handled.
func TestBatchRefusals(t *testing.T) {
	var scopes []mcphttp.Scope
	s := open(t, echo, nil, func(o *mcphttp.Options) {
		o.Authenticate = func(r *http.Request) (mcphttp.Principal, error) {
			if r.Header.Get("Authorization") == "" {
				return mcphttp.Principal{}, errors.New("no token")
			}
			return mcphttp.Principal{Name: "ann", Scopes: scopes}, nil
		}
	})
	old, today := s.initializeAs("2025-03-26", nil), s.initializeAs("2025-06-18", nil)
	const (
		level  = `{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}`
		modern = `{"jsonrpc":"2.0","id":3,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	)
	for _, tt := range []struct {
		name, body string
		h          headers
		scopes     []mcphttp.Scope
		status     int
		part       string
	}{
		{"another version", "[" + ping + "]", today, nil, 400, "batches are not accepted"},
		{"no session", "[" + ping + "]", nil, nil, 400, "batches are not accepted"},
		{"a session that does not exist", "[" + ping + "]", headers{"Mcp-Session-Id": "guess"}, nil, 400, "batches are not accepted"},
		{"empty", "[ ]", old, nil, 400, "-32600"},
		{"too many", "[" + strings.Repeat(ping+",", 256) + ping + "]", old, nil, 400, "-32600"},
		{"in a batch", "[[" + ping + "]]", old, nil, 400, "batches are not accepted"},
		{"one is a number", "[" + level + ",5]", old, nil, 400, "a message is an object"},
		{"one is of 2026-07-28", "[" + level + "," + modern + "]", old, nil, 400, "batches are not accepted"},
		{"an id twice", "[" + level + "," + ping + "," + ping + "]", old, nil, 400, "id 1 is already in use"},
		{"not JSON", "[" + ping + ",]", old, nil, 400, "-32700"},
		{"not allowed", "[" + ping + "," + codex("9", "go", "") + "]", old, []mcphttp.Scope{mcphttp.ScopeRead}, 403, "codex:run"},
		{"an answer that is not allowed", "[" + ping + `,{"jsonrpc":"2.0","id":0,"result":{}}]`, old, []mcphttp.Scope{mcphttp.ScopeRead, mcphttp.ScopeRun}, 403, "codex:approve"},
		{"works", "[" + ping + "," + level + "]", old, nil, 200, `"id":2`},
	} {
		scopes = tt.scopes
		s.post(tt.body, tt.h).wants(t, tt.status, tt.part, "%s", tt.name)
	}
}

const call = `"name":"codex","arguments":{"prompt":"hello"}`

// ofThread is a call that names a thread.
const ofThread = `"name":"codex-interrupt","arguments":{"threadId":"t"}`

// TestModern sends requests of 2026-07-28 whose headers agree with the body, and some whose headers do not.
func TestModern(t *testing.T) {
	s := open(t, echo, nil, nil)
	for _, tt := range []struct {
		name, method, params string
		change               headers
		status               int
		part                 string
	}{
		{"discover", "server/discover", "", nil, 200, `"supportedVersions"`},
		{"tools", "tools/list", "", nil, 200, `"codex-reply"`},
		{"unknown method", "no/such", "", nil, 404, `"code":-32601`},
		{"removed method", "initialize", "", nil, 404, `"code":-32601`},
		{"unknown tool", "tools/call", `"name":"nope"`, headers{"Mcp-Name": "nope"}, 200, `"code":-32602`},
		{"no name", "tools/call", ``, headers{"Mcp-Name": ""}, 200, `"code":-32602`},
		{"another version", "tools/list", "", headers{"MCP-Protocol-Version": "2025-11-25"}, 400, `"code":-32020`},
		{"no version", "tools/list", "", headers{"MCP-Protocol-Version": ""}, 400, `"code":-32020`},
		{"no method", "tools/list", "", headers{"Mcp-Method": ""}, 400, `"code":-32020`},
		{"another method", "tools/list", "", headers{"Mcp-Method": "tools/call"}, 400, `"code":-32020`},
		{"a method in another case", "tools/list", "", headers{"Mcp-Method": "Tools/List"}, 400, `"code":-32020`},
		{"another name", "tools/call", call, headers{"Mcp-Name": "codex-list"}, 400, `"code":-32020`},
		{"missing name", "tools/call", call, headers{"Mcp-Name": ""}, 400, `"code":-32020`},
		{"a name that the body lacks", "tools/call", ``, nil, 400, `"code":-32020`},
		{"broken base64", "tools/call", call, headers{"Mcp-Name": "=?base64?***?="}, 400, `"code":-32020`},
		{"other base64", "tools/call", call, headers{"Mcp-Name": "=?base64?bm9wZQ==?="}, 400, `"code":-32020`},
		{"another task", "tasks/cancel", `"taskId":"t"`, headers{"Mcp-Name": "another"}, 400, `"code":-32020`},
		{"not ASCII", "tools/call", call, headers{"Mcp-Name": "codéx"}, 400, `"code":-32020`},
		{"a mirrored thread", "tools/call", ofThread, headers{"Mcp-Name": "codex-interrupt", "Mcp-Param-Thread-Id": "t"}, 200, `"result"`},
		{"a mirrored thread in base64", "tools/call", ofThread, headers{"Mcp-Name": "codex-interrupt", "Mcp-Param-Thread-Id": "=?base64?dA==?="}, 200, `"result"`},
		{"a thread that is not mirrored", "tools/call", ofThread, headers{"Mcp-Name": "codex-interrupt", "Mcp-Param-Thread-Id": ""}, 400, `"code":-32020`},
		{"another thread", "tools/call", ofThread, headers{"Mcp-Name": "codex-interrupt", "Mcp-Param-Thread-Id": "T"}, 400, `"code":-32020`},
		{"an empty thread", "tools/call", ofThread, headers{"Mcp-Name": "codex-interrupt", "Mcp-Param-Thread-Id": " "}, 400, `"code":-32020`},
		{"a thread that the body lacks", "tools/call", call, headers{"Mcp-Param-Thread-Id": "t"}, 400, `"code":-32020`},
		{"a thread without a call", "tools/list", "", headers{"Mcp-Param-Thread-Id": "t"}, 400, `"code":-32020`},
		{"mirrored arguments", "tools/list", "", nil, 200, `"threadId":{"x-mcp-header":"Thread-Id","type":"string"`},
	} {
		body, h := modern("7", tt.method, "{}", tt.params)
		maps.Copy(h, tt.change)
		got := s.post(body, h)
		got.wants(t, tt.status, tt.part, "%s", tt.name)
		if !strings.Contains(got.body, `"id":7`) || got.header.Get("Content-Type") != "application/json" || got.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

// eager is a service that writes messages as soon as it has a request.
type eager struct{ mcphttp.Service }

func (eager) Exchange(ctx context.Context, t jsonrpc.Transport) error {
	for _, m := range []string{`{"jsonrpc":"2.0","method":"one"}`, `{"jsonrpc":"2.0","method":"two"}`, `{"jsonrpc":"2.0","id":7,"result":{}}`} {
		if err := t.Write(ctx, [][]byte{[]byte(m)}); err != nil {
			return err
		}
	}
	return nil
}

// TestModernEvents has requests at once, whose events come before the response can be written. None is lost. The race detector
// makes it slow enough to fail without that.
func TestModernEvents(t *testing.T) {
	l := openLocal(t, func(p *codexserver.Principal) mcphttp.Service { return eager{p} }, nil)
	defer l.close()
	body, h := modern("7", "tools/list", "{}", "")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(32)) // the system interrupts each of them anywhere
	var all sync.WaitGroup
	defer all.Wait()
	for range 64 {
		all.Go(func() {
			for range 50 {
				if got := l.do(http.MethodPost, h, body).Body.String(); strings.Count(got, "data: ") != 3 {
					t.Errorf("the events %q", got)
					return
				}
			}
		})
	}
}

// TestModernMetadata sends requests with an invalid _meta.
func TestModernMetadata(t *testing.T) {
	s := open(t, echo, nil, nil)
	for _, tt := range []struct {
		name, meta, version string
		status              int
		part                string
	}{
		{"none", `{}`, "2026-07-28", 400, `"code":-32602`},
		{"none and no header", `{}`, "", 400, `"code":-32602`},
		{"no capabilities", `{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`, "2026-07-28", 400, `"code":-32602`},
		{"no version", `{"io.modelcontextprotocol/clientCapabilities":{}}`, "2026-07-28", 400, `"code":-32602`},
		{"unknown version", `{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}`, "2099-01-01", 400, `"code":-32022`},
		{"version twice", `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/protocolVersion":"2025-11-25","io.modelcontextprotocol/clientCapabilities":{}}`, "2026-07-28", 400, `"code":-32`},
	} {
		got := s.post(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":`+tt.meta+`}}`, headers{"MCP-Protocol-Version": tt.version, "Mcp-Method": "server/discover"})
		got.wants(t, tt.status, tt.part, "%s", tt.name)
	}
	if got := s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}`, headers{"MCP-Protocol-Version": "2026-07-28"}); got.status != http.StatusAccepted || got.body != "" {
		t.Errorf("a notification: %+v", got)
	}
}

// TestModernRound receives a question in a result, and sends the answer with the next request.
func TestModernRound(t *testing.T) {
	s := open(t, asking, nil, nil)
	body, h := modern("1", "tools/call", `{"elicitation":{}}`, call)
	first := s.stream(http.MethodPost, body, h)
	state := found(t, first.until(`"input_required"`), "requestState")
	must.Equal(t, "after the answer", "", first.next())
	again := `"requestState":"` + state + `","inputResponses":{"q1":{"action":"accept","content":{"decision":"approved"}}},` + call
	body, h = modern("2", "tools/call", `{"elicitation":{}}`, again)
	if !s.handler.Load().Parked {
		t.Error("the load does not say that a client comes back")
	}
	s.post(body, h).wants(t, 200, "decided approved", "the second round")
	if s.handler.Load().Parked {
		t.Error("the load says that a client comes back whose call has ended")
	}
}

// TestTaskIsNotParked leaves the question of a task open: another process could ask it again.
func TestTaskIsNotParked(t *testing.T) {
	s := open(t, asking, &codexserver.Options{Home: testenv.Home(t), Tasks: codexserver.TaskOptions{Grace: -1}}, nil)
	body, h := modern("1", "tools/call", tasks, call)
	if got := s.post(body, h); !strings.Contains(got.body, `"taskId"`) {
		t.Fatalf("no task: %+v", got)
	}
	if l := s.handler.Load(); !l.Busy || l.Parked {
		t.Errorf("load %+v", l)
	}
}

// request is a line of the log about a request.
type request struct {
	Principal, ID, Method, Tool string
	Status                      int
}

// requests is a log. It sends the lines about requests to all, and keeps every line.
type requests struct {
	all  chan request
	mu   sync.Mutex
	text string
}

// Write implements [io.Writer].
func (l *requests) Write(line []byte) (int, error) {
	var one struct {
		Msg string
		request
	}
	l.mu.Lock()
	l.text += string(line)
	l.mu.Unlock()
	if err := json.Unmarshal(line, &one); err != nil {
		return 0, err
	}
	if one.Msg == "request" {
		l.all <- one.request
	}
	return len(line), nil
}

// TestServed checks that the log has a line for each request, with no content of it, and that neither it nor an answer has
// a token or the id of a session.
func TestServed(t *testing.T) {
	log := &requests{all: make(chan request, 2)}
	site := open(t, engine.TurnFunc(nil), nil, func(o *mcphttp.Options) {
		o.Logger = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	session := site.initialize(nil)
	wait(t, log.all)
	body, h := modern("7", "tools/call", "{}", `"name":"codex-wait","arguments":{"threadIds":["a-prompt"]}`)
	h["Mcp-Name"] = "codex-wait"
	strange, strangeHeaders := modern("8", "a-method", "{}", "")
	strange = strings.Replace(strange, `"id":8`, `"id":"an id with words"`, 1)
	for _, tt := range []struct {
		name, method, body string
		headers            headers
		want               request
	}{
		{"a call", "POST", body, h, request{Principal: "ann", ID: "7", Method: "tools/call", Tool: "codex-wait", Status: 200}},
		{"in a session", "POST", ping, session, request{Principal: "ann", ID: "1", Method: "ping", Status: 200}},
		{"no token", "POST", body, headers{"Authorization": "Bearer a-secret"}, request{Method: "POST", Status: 401}},
		{"no JSON", "POST", "a-prompt", nil, request{Principal: "ann", Status: 400}},
		{"an unknown method", "POST", strange, strangeHeaders, request{Principal: "ann", ID: "invalid", Method: "a-method", Status: 404}},
		{"an unknown session", "GET", "", headers{"Mcp-Session-Id": "a-session"}, request{Principal: "ann", Method: "GET", Status: 404}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := site.do(tt.method, tt.body, tt.headers)
			if text := fmt.Sprint(got.header, got.body); strings.Contains(text, "a-secret") || strings.Contains(text, "a-session") || strings.Contains(text, session["Mcp-Session-Id"]) {
				t.Errorf("the answer: %s", text)
			}
			must.Equal(t, "logged", tt.want, wait(t, log.all))
		})
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	for _, secret := range []string{"a-prompt", "a-secret", "a-session", "Bearer", session["Mcp-Session-Id"], "with words"} {
		if strings.Contains(log.text, secret) {
			t.Errorf("the log has %q: %s", secret, log.text)
		}
	}
}

// TestLoad checks the numbers of open requests and sessions.
func TestLoad(t *testing.T) {
	e, began, _ := stuck()
	site := open(t, e, nil, nil)
	session := site.initialize(nil)
	stream := site.stream(http.MethodPost, codex("2", "work", ""), session)
	wait(t, began)
	if got, want := site.handler.Load(), (mcphttp.Load{Requests: 1, Sessions: 1, Busy: true}); got != want {
		t.Errorf("load %+v, want %+v", got, want)
	}
	stream.close()
}

// first returns the lines of the first event of a stream.
func (v *sse) first() (lines string) {
	v.t.Helper()
	for {
		line, err := v.lines.ReadString('\n')
		if err != nil {
			v.t.Fatalf("the stream ended: %v", err)
		}
		if line == "\n" {
			return lines
		}
		lines += line
	}
}

// TestStreamsBeginWithAnEmptyEvent checks that streams start with an empty event since MCP
// 2025-11-25. With its id a client can resume a stream before the first message.
func TestStreamsBeginWithAnEmptyEvent(t *testing.T) {
	e, began, _ := stuck()
	s := open(t, e, nil, nil)
	for version, begins := range map[string]string{
		"2025-03-26": "", "2025-06-18": "", "2025-11-25": "id: %-0\nretry: 1000\ndata: \n",
	} {
		h := s.initializeAs(version, nil)
		for _, again := range []string{"a second time", "a third time"} { // changes nothing
			s.post(`{"jsonrpc":"2.0","id":"`+again+`","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, h)
		}
		call := s.stream(http.MethodPost, codex("1", version, `"progressToken":"tok"`), h)
		wait(t, began)
		standing := s.stream(http.MethodGet, "", h)
		if begins == "" {
			if got := call.first(); !strings.Contains(got, "data: {") {
				t.Errorf("%s: the stream of a call begins with %q", version, got)
			}
			continue
		}
		for number, v := range map[string]*sse{"4": call, "0": standing} {
			if got, want := v.first(), strings.Replace(begins, "%", number, 1); got != want {
				t.Errorf("%s: stream %s begins with %q, want %q", version, number, got, want)
			}
		}
		call.close()
		h["Last-Event-ID"] = "4-0"
		again := s.stream(http.MethodGet, "", h)
		if got, want := again.first(), strings.Replace(begins, "%", "4", 1); got != want {
			t.Errorf("%s: the resumed stream begins with %q, want %q", version, got, want)
		}
		if got := again.next(); again.lastID != "4-1" {
			t.Errorf("%s: the resumed stream continues with %s %s", version, again.lastID, got)
		}
	}
}

// TestAnswersWithoutEventIDsAreNotKept checks that answers without an event id do not displace
// events from which a client may resume.
func TestAnswersWithoutEventIDsAreNotKept(t *testing.T) {
	e, began, _ := stuck()
	s := open(t, e, nil, func(o *mcphttp.Options) { o.MaxRetained = 32 << 10 })
	h := s.initialize(nil)
	v := s.stream(http.MethodPost, codex("1", "hello", ""), h)
	wait(t, began)
	v.close()
	for range 10 {
		if got := s.post(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, h); got.header.Get("Content-Type") != "application/json" || len(got.body) < 8<<10 {
			t.Fatalf("%+v", got)
		}
	}
	h["Last-Event-ID"] = "2-0"
	if got := s.stream(http.MethodGet, "", h).next(); !strings.Contains(got, "session_configured") {
		t.Errorf("the stream continues with %s", got)
	}
}
