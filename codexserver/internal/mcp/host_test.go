package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

func TestMain(m *testing.M) { os.Exit(memdir.Run(m)) }

// What a modern client declares.
const (
	noForms    = `{}`
	withForms  = `{"elicitation":{}}`
	withEvents = `{"elicitation":{},"extensions":{"io.github.codexmcp/events":{}}}`
	withTasks  = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
)

// The answers to a question.
const (
	accepts   = `{"action":"accept"}`
	declines  = `{"action":"decline"}`
	acceptOne = `{"q1":` + accepts + `}`
)

// wire serves a client, and checks every message of the server: its form, and that it belongs to
// an open request that asked for it. Requests of the server, and notifications of no request, are
// allowed only on a connection that is also used with a handshake.
type wire struct {
	servertest.Server
	t *testing.T

	mu     sync.Mutex
	legacy bool
	open   map[string]*request       // by id
	told   map[string]map[string]int // how many notifications of each method a request got
}

// request is an open request.
type request struct {
	id, method   string
	modern       bool
	token, level string
	events       bool
	sent         float64 // progress
}

// checked is the server's end.
type checked struct {
	jsonrpc.Transport
	wire *wire
}

func (w *wire) Serve(ctx context.Context, t jsonrpc.Transport) error {
	return w.Server.Serve(ctx, checked{t, w})
}

func (c checked) Read(ctx context.Context) ([]byte, error) {
	line, err := c.Transport.Read(ctx)
	if err == nil {
		c.wire.asks(line)
	}
	return line, err
}

func (c checked) Write(ctx context.Context, messages [][]byte) error {
	for _, line := range messages {
		c.wire.says(line)
	}
	return c.Transport.Write(ctx, messages)
}

// asks notes a request of the client.
func (w *wire) asks(line []byte) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
	}
	if err := json.Unmarshal(line, &m); m.ID == nil || m.Method == "" {
		if err != nil {
			w.t.Error(err)
		}
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	meta := m.Params.Meta
	x := &request{
		id: string(m.ID), method: m.Method, token: string(meta["progressToken"]), level: string(meta["io.modelcontextprotocol/logLevel"]),
		events: strings.Contains(string(meta[modern.MetaClientCapabilities]), "codexmcp/events"),
	}
	for _, key := range []string{modern.MetaProtocolVersion, modern.MetaClientInfo, modern.MetaClientCapabilities} {
		x.modern = x.modern || meta[key] != nil
	}
	w.legacy = w.legacy || !x.modern
	w.open[x.id] = x
}

// says checks a message of the server.
func (w *wire) says(line []byte) {
	var m struct {
		ID             json.RawMessage
		Method         string
		Params, Result json.RawMessage
		Error          *jsonrpc.Error
	}
	if err := json.Unmarshal(line, &m); err != nil {
		w.t.Errorf("not JSON: %s", line)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch x := w.open[string(m.ID)]; {
	case m.Method != "" && m.ID != nil:
		if !w.legacy {
			w.t.Errorf("the server sends a request: %s", line)
		}
	case m.Method != "":
		x, wrong := w.owner(m.Method, m.Params)
		if wrong != nil && !w.legacy {
			w.t.Errorf("%v: %s", wrong, line)
		}
		if wrong == nil {
			if w.told[x.id] == nil {
				w.told[x.id] = map[string]int{}
			}
			w.told[x.id][m.Method]++
		}
	case x == nil:
		w.t.Errorf("an answer to nothing: %s", line)
	default:
		delete(w.open, x.id)
		if err := x.check(m.Result, m.Error); x.modern && err != nil {
			w.t.Errorf("%s: %v: %s", x.method, err, line)
		}
	}
}

// owner returns the open request that a notification belongs to.
func (w *wire) owner(method string, params json.RawMessage) (*request, error) {
	var wants func(*request) bool
	var err error
	switch method {
	case "notifications/progress":
		var p modern.ProgressNotificationParams
		err = modern.DecodeStrict(params, &p)
		token, _ := json.Marshal(p.ProgressToken)
		wants = func(x *request) bool {
			more := x.token == string(token) && p.Progress > x.sent
			if more {
				x.sent = p.Progress
			}
			return more
		}
	case "notifications/message":
		err = modern.DecodeStrict(params, &modern.LoggingMessageNotificationParams{})
		wants = func(x *request) bool { return x.level != "" }
	case "codex/event":
		var p struct {
			Meta struct{ RequestID json.RawMessage } `json:"_meta"`
		}
		err = json.Unmarshal(params, &p)
		wants = func(x *request) bool { return x.id == string(p.Meta.RequestID) && x.events }
	default:
		err = errors.New("an unknown notification")
	}
	if err != nil {
		return nil, err
	}
	for _, x := range w.open {
		if wants(x) {
			return x, nil
		}
	}
	return nil, errors.New("of no open request that asked for it, or no more progress")
}

// check checks an answer by the schema.
func (x *request) check(result json.RawMessage, e *jsonrpc.Error) error {
	if e != nil {
		known := e.Code == modern.CodeMissingRequiredClientCapability || e.Code == modern.CodeUnsupportedProtocolVersion
		if result != nil || e.Code >= -32099 && e.Code <= -32000 && !known {
			return errors.New("a result and an error, or a code that is never sent")
		}
		return nil
	}
	var common struct {
		ResultType string `json:"resultType"`
		Meta       struct {
			Server struct{ Name, Title, Version string } `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(result, &common); err != nil || common.ResultType == "" || common.Meta.Server.Name != "codex-mcp" ||
		common.Meta.Server.Title == "" || common.Meta.Server.Version == "" {
		return errors.New("lacks resultType or serverInfo")
	}
	switch x.method {
	case "server/discover":
		return modern.DecodeStrict(result, &modern.DiscoverResult{})
	case "tools/list":
		return modern.DecodeStrict(result, &modern.ListToolsResult{})
	case "tools/call":
		return modern.DecodeStrict(result, new(modern.AnyCallToolResult))
	case "tasks/get":
		return modern.DecodeStrict(result, &modern.GetTaskResult{})
	}
	return errors.New("has a result")
}

// host is a client of either era.
type host struct {
	*servertest.Client
	t    *testing.T
	wire *wire
	last atomic.Int64 // progress token

	modern       bool
	name         string
	capabilities string // of the next requests, if modern
	level        string // of the log messages that they ask for; "" for none
	meta         string // more members of their _meta
	token        bool   // they ask for progress
}

// join connects a client whose wire is checked.
func join(t *testing.T, s servertest.Server, o servertest.Host) *host {
	t.Helper()
	w := &wire{Server: s, t: t, open: map[string]*request{}, told: map[string]map[string]int{}}
	h := &host{Client: servertest.Join(t, w, o), t: t, wire: w, name: o.Name, modern: o.Era != servertest.Handshake, capabilities: "{" + o.Capabilities + "}", meta: o.Meta}
	if o.Answer != nil {
		h.capabilities = withForms
	}
	return h
}

func connectModern(t *testing.T, e engine.Engine, o *codexserver.Options) *host {
	t.Helper()
	return connectModernTo(t, codexserver.New(e, o))
}

// connectModernTo connects a client of 2026-07-28 that shows forms and progress. The tests answer its questions.
func connectModernTo(t *testing.T, s *codexserver.Server) *host {
	t.Helper()
	h := join(t, s, servertest.Host{Era: servertest.Rounds})
	h.capabilities, h.token = withForms, true
	return h
}

// play runs f in a bubble, with a client of a server whose engine is a worker.
func play(t *testing.T, o *codexserver.Options, f func(*testing.T, *host, *servertest.Worker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &servertest.Worker{}
		f(t, connectModern(t, w.Engine(), o), w)
	})
}

// told returns the number of notifications of each method that belong to a request.
func (h *host) told(x *exchange) map[string]int {
	synctest.Wait()
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	return maps.Clone(h.wire.told[x.ID().String()])
}

// exchange is a request and its answer.
type exchange struct {
	*jsonrpc.Call
	host *host
}

// answer is the answer to a request.
type answer struct {
	raw           json.RawMessage
	err           *jsonrpc.Error
	Structure     `json:"structuredContent"`
	IsError       bool
	Texts         []struct{ Text string } `json:"content"`
	RequestState  string
	InputRequests map[string]json.RawMessage
}

// Structure is the structured content of a result.
type Structure struct {
	ThreadID, Content, Status string
	Threads                   []struct{ ThreadID, Content, Status, Since string }
}

// start sends a request with these members of its params next to _meta.
func (h *host) start(method string, members ...string) *exchange {
	var meta []string
	if h.meta != "" {
		meta = append(meta, h.meta)
	}
	if h.level != "" {
		meta = append(meta, fmt.Sprintf(`"io.modelcontextprotocol/logLevel":%q`, h.level))
	}
	if h.token {
		meta = append(meta, fmt.Sprintf(`"progressToken":"t%d"`, h.last.Add(1)))
	}
	if h.modern {
		meta = append(meta, version2026, fmt.Sprintf(`"io.modelcontextprotocol/clientInfo":{"name":%q,"version":"1"},"io.modelcontextprotocol/clientCapabilities":%s`, h.name, h.capabilities))
	}
	if len(meta) > 0 {
		members = append(slices.Clone(members), `"_meta":{`+strings.Join(meta, ",")+`}`)
	}
	return h.startWith(method, "{"+strings.Join(members, ",")+"}")
}

// startWith sends a request with these params.
func (h *host) startWith(method, params string) *exchange {
	return &exchange{h.Start(context.Background(), method, json.RawMessage(params)), h}
}

// wait returns the answer.
func (x *exchange) wait() (a answer) {
	x.host.t.Helper()
	err := x.Result(&a.raw)
	if err == nil {
		err = json.Unmarshal(a.raw, &a)
	}
	if err != nil && !errors.As(err, &a.err) {
		x.host.t.Errorf("%s: %v", a.raw, err)
	}
	return a
}

// answered reports whether there is an answer.
func (x *exchange) answered() bool {
	select {
	case <-x.Done():
		return true
	default:
		return false
	}
}

// cancel cancels the request, which is to have no answer then.
func (x *exchange) cancel() {
	if err := x.host.Notify(context.Background(), "notifications/cancelled", map[string]any{"requestId": x.ID()}); err != nil {
		x.host.t.Error(err)
	}
}

func toolCall(tool, arguments string) []string {
	return []string{`"name":"` + tool + `"`, `"arguments":` + arguments}
}

// promptOf returns the arguments of codex with a prompt.
func promptOf(prompt string) string { return fmt.Sprintf(`{"prompt":%q}`, prompt) }

// starts calls the tool codex with a prompt, and does not wait.
func (h *host) starts(prompt string) *exchange {
	return h.start("tools/call", toolCall("codex", promptOf(prompt))...)
}

// call calls a tool.
func (h *host) call(tool, arguments string) answer {
	h.t.Helper()
	return h.start("tools/call", toolCall(tool, arguments)...).wait()
}

// codex calls the tool codex with a prompt.
func (h *host) codex(prompt string) answer {
	h.t.Helper()
	return h.call("codex", promptOf(prompt))
}

// round is a retry of a call: tool and arguments, a state, and the answers.
func (h *host) round(tool, arguments, state, responses string) *exchange {
	members := append(toolCall(tool, arguments), fmt.Sprintf(`"requestState":%q`, state))
	if responses != "" {
		members = append(members, `"inputResponses":`+responses)
	}
	return h.start("tools/call", members...)
}

// again retries the call of a prompt after an answer that asks.
func (h *host) again(prompt string, a answer, responses string) answer {
	h.t.Helper()
	return h.round("codex", promptOf(prompt), h.state(a), responses).wait()
}

// state returns the state of an answer that asks.
func (h *host) state(a answer) string {
	h.t.Helper()
	if a.RequestState == "" {
		h.t.Fatalf("asks nothing: %s %v", a.raw, a.err)
	}
	return a.RequestState
}

// keys returns the keys of an answer that asks, in order.
func (a answer) keys() string { return strings.Join(slices.Sorted(maps.Keys(a.InputRequests)), " ") }

// text returns an answer as one line.
func (a answer) text() string {
	switch {
	case a.err != nil:
		return fmt.Sprintf("%d %s", a.err.Code, a.err.Message)
	case a.RequestState != "":
		return "asks " + a.keys()
	case a.Texts == nil:
		return string(a.raw)
	}
	words := ""
	if a.IsError {
		words = "failed: "
	}
	for i, b := range a.Texts {
		if strings.HasPrefix(b.Text, "\n[thread ") {
			continue // it names the thread for the client's model
		}
		if i > 0 {
			words += " | "
		}
		words += b.Text
	}
	return words
}

// rows returns the threads in a result of codex-wait, by their texts.
func (a answer) rows() string {
	var rows []string
	for _, r := range a.Threads {
		rows = append(rows, r.Status+": "+r.Content)
	}
	return strings.Join(rows, "; ")
}

// pass waits in a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }

// has fails the test unless a text has all parts.
func has(t *testing.T, name, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %s, want %s", name, text, part)
		}
	}
}

// bubble runs a test by its name in a bubble.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}
