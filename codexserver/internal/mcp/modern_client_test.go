package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// What a modern client declares.
const (
	noForms    = `{}`
	withForms  = `{"elicitation":{}}`
	withEvents = `{"elicitation":{},"extensions":{"io.github.codexmcp/events":{}}}`
)

// modernClient is a client of MCP 2026-07-28. It checks every message of the server: its
// form, and that it belongs to an open request that asked for it. Requests of the server
// are allowed only on a connection that is also used with a handshake.
type modernClient struct {
	t            *testing.T
	transport    jsonrpc.Transport
	capabilities string // of the next requests
	level        string // of the log messages that they ask for; "" for none
	legacy       bool   // the server may send requests and events of no request
	served       chan error
	held         *[]string // lines that are kept instead of sent; nil sends them

	mu       sync.Mutex
	next     int
	open     map[string]*exchange // by id
	notes    []note
	requests []string // methods of the server's requests
}

// note is a notification of the server.
type note struct {
	method  string
	params  json.RawMessage
	request string // the id of the request that it belongs to
}

// exchange is a request and its answer.
type exchange struct {
	client *modernClient
	id     string // as JSON
	method string
	sent   float64 // progress
	level  string
	events bool
	answer chan answer
}

// answer is the answer to a request; one of the members is set.
type answer struct {
	raw    json.RawMessage // any result
	result *modern.CallToolResult
	input  *modern.InputRequiredResult
	err    *jsonrpc.Error
}

func connectModern(t *testing.T, e engine.Engine, o *codexserver.Options) *modernClient {
	t.Helper()
	return connectModernTo(t, codexserver.New(e, o))
}

func connectModernTo(t *testing.T, s *codexserver.Server) *modernClient {
	t.Helper()
	ours, theirs := jsonrpc.Pipe()
	c := &modernClient{t: t, transport: ours, capabilities: withForms, served: make(chan error, 1), open: map[string]*exchange{}}
	var reading sync.WaitGroup
	reading.Go(c.read)
	go func() { c.served <- s.Serve(context.Background(), theirs) }()
	t.Cleanup(func() {
		c.end()
		reading.Wait()
		if err := <-c.served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return c
}

// play runs f in a bubble, with a client of a server whose engine is a worker.
func play(t *testing.T, o *codexserver.Options, f func(*testing.T, *modernClient, *servertest.Worker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &servertest.Worker{}
		f(t, connectModern(t, w.Engine(), o), w)
	})
}

// end ends the client's input and output.
func (c *modernClient) end() { c.transport.Close() }

func (c *modernClient) read() {
	for {
		line, err := c.transport.Read(context.Background())
		if err != nil {
			return
		}
		c.receive(line)
	}
}

func (c *modernClient) receive(line []byte) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
		Error  *jsonrpc.Error  `json:"error"`
	}
	if err := json.Unmarshal(line, &m); err != nil {
		c.t.Errorf("not JSON: %s", line)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.Method != "" && m.ID != nil:
		if !c.legacy {
			c.t.Errorf("the server sends a request: %s", line)
		}
		c.requests = append(c.requests, m.Method)
	case m.Method != "":
		c.notes = append(c.notes, note{m.Method, m.Params, c.owner(m.Method, m.Params)})
	default:
		x := c.open[string(m.ID)]
		if x == nil {
			c.t.Errorf("an answer to nothing: %s", line)
			return
		}
		delete(c.open, x.id)
		x.answer <- x.read(m.Result, m.Error)
	}
}

// owner returns the id of the open request that a notification belongs to.
func (c *modernClient) owner(method string, params json.RawMessage) string {
	wrong := func(why string) string {
		if !c.legacy {
			c.t.Errorf("%s: %s: %s", why, method, params)
		}
		return ""
	}
	switch method {
	case "notifications/progress":
		var p modern.ProgressNotificationParams
		if err := modern.DecodeStrict(params, &p); err != nil {
			return wrong(err.Error())
		}
		token, _ := json.Marshal(p.ProgressToken)
		x := c.open[strings.TrimPrefix(strings.Trim(string(token), `"`), "t")]
		if x == nil || p.Progress <= x.sent {
			return wrong("progress of no open request, or not more of it")
		}
		x.sent = p.Progress
		return x.id
	case "notifications/message":
		var p modern.LoggingMessageNotificationParams
		if err := modern.DecodeStrict(params, &p); err != nil {
			return wrong(err.Error())
		}
		for _, x := range c.open {
			if x.level != "" {
				return x.id
			}
		}
		return wrong("no open request asked for messages")
	case "codex/event":
		var p struct {
			Meta struct{ RequestID json.RawMessage } `json:"_meta"`
		}
		if err := json.Unmarshal(params, &p); err != nil {
			return wrong(err.Error())
		}
		if x := c.open[string(p.Meta.RequestID)]; x != nil && x.events {
			return x.id
		}
		return wrong("an event of no open request that asked for it")
	}
	return wrong("an unknown notification")
}

// read reads an answer by the schema.
func (x *exchange) read(result json.RawMessage, e *jsonrpc.Error) answer {
	a := answer{raw: result, err: e}
	switch {
	case x.method == "":
		return a
	case e != nil:
		if result != nil {
			x.client.t.Errorf("%s: a result and an error", x.method)
		}
		if e.Code >= -32099 && e.Code <= -32000 && e.Code != modern.CodeMissingRequiredClientCapability && e.Code != modern.CodeUnsupportedProtocolVersion {
			x.client.t.Errorf("%s: the code %d is never sent", x.method, e.Code)
		}
		return a
	}
	var common struct {
		ResultType string `json:"resultType"`
		Meta       struct {
			Server struct{ Name, Title, Version string } `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(result, &common); err != nil || common.ResultType == "" || common.Meta.Server.Name != "codex-mcp" ||
		common.Meta.Server.Title == "" || common.Meta.Server.Version == "" {
		x.client.t.Errorf("%s: lacks resultType or serverInfo: %s", x.method, result)
	}
	var err error
	switch x.method {
	case "server/discover":
		err = modern.DecodeStrict(result, &modern.DiscoverResult{})
	case "tools/list":
		err = modern.DecodeStrict(result, &modern.ListToolsResult{})
	case "tools/call":
		var any modern.AnyCallToolResult
		if err = modern.DecodeStrict(result, &any); err == nil {
			a.result, _ = any.(*modern.CallToolResult)
			a.input, _ = any.(*modern.InputRequiredResult)
		}
	case "tasks/get":
		err = modern.DecodeStrict(result, &modern.GetTaskResult{})
	default:
		x.client.t.Errorf("%s: has a result: %s", x.method, result)
	}
	if err != nil {
		x.client.t.Errorf("%s: %v: %s", x.method, err, result)
	}
	return a
}

// write sends a line unchanged, unless lines are held.
func (c *modernClient) write(line string) {
	if c.held != nil {
		*c.held = append(*c.held, line)
		return
	}
	if err := c.transport.Write(context.Background(), [][]byte{[]byte(line)}); err != nil {
		c.t.Errorf("write: %v", err)
	}
}

// meta returns the _meta of the request with that id.
func (c *modernClient) meta(id string) string {
	level := ""
	if c.level != "" {
		level = fmt.Sprintf(`"io.modelcontextprotocol/logLevel":%q,`, c.level)
	}
	return fmt.Sprintf(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},%s"io.modelcontextprotocol/clientCapabilities":%s,"progressToken":"t%s"}`,
		level, c.capabilities, id)
}

// start sends a request with these members of its params next to _meta.
func (c *modernClient) start(method string, members ...string) *exchange {
	c.mu.Lock()
	id := strconv.Itoa(c.next + 1)
	c.mu.Unlock()
	return c.startWith(method, "{"+strings.Join(append(slices.Clone(members), `"_meta":`+c.meta(id)), ",")+"}")
}

// startWith sends a request with these params.
func (c *modernClient) startWith(method, params string) *exchange {
	c.mu.Lock()
	c.next++
	x := &exchange{
		client: c, id: strconv.Itoa(c.next), method: method, level: c.level, events: strings.Contains(c.capabilities, "codexmcp/events"),
		answer: make(chan answer, 1),
	}
	c.open[x.id] = x
	c.mu.Unlock()
	c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, x.id, method, params))
	return x
}

// wait returns the answer.
func (x *exchange) wait() answer {
	x.client.t.Helper()
	select {
	case a := <-x.answer:
		return a
	case <-x.client.t.Context().Done():
		x.client.t.Fatalf("%s %s was not answered", x.method, x.id)
		return answer{}
	}
}

// cancel cancels the request, which is to have no answer then.
func (x *exchange) cancel() {
	x.client.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + x.id + `}}`)
}

// The answers to a question.
const (
	accepts  = `{"action":"accept"}`
	declines = `{"action":"decline"}`
)

func toolCall(tool, arguments string) []string {
	return []string{`"name":"` + tool + `"`, `"arguments":` + arguments}
}

// call calls a tool.
func (c *modernClient) call(tool, arguments string) answer {
	c.t.Helper()
	return c.start("tools/call", toolCall(tool, arguments)...).wait()
}

// codex calls the tool codex with a prompt.
func (c *modernClient) codex(prompt string) answer {
	c.t.Helper()
	return c.call("codex", fmt.Sprintf(`{"prompt":%q}`, prompt))
}

// round is a retry of a call: tool and arguments, a state, and the answers.
func (c *modernClient) round(tool, arguments, state, responses string) *exchange {
	members := append(toolCall(tool, arguments), fmt.Sprintf(`"requestState":%q`, state))
	if responses != "" {
		members = append(members, `"inputResponses":`+responses)
	}
	return c.start("tools/call", members...)
}

// state returns the state of an answer that asks.
func (c *modernClient) state(a answer) string {
	c.t.Helper()
	if a.input == nil || a.input.RequestState == nil {
		c.t.Fatalf("asks nothing: %s %v", a.raw, a.err)
	}
	return *a.input.RequestState
}

// keys returns the keys of an answer that asks, in order.
func (a answer) keys() string {
	if a.input == nil {
		return ""
	}
	var keys []string
	for key := range a.input.InputRequests {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

// text returns an answer as one line.
func (a answer) text() string {
	switch {
	case a.err != nil:
		return fmt.Sprintf("%d %s", a.err.Code, a.err.Message)
	case a.input != nil:
		return "asks " + a.keys()
	case a.result == nil:
		return string(a.raw)
	}
	words := ""
	if a.result.IsError != nil && *a.result.IsError {
		words = "failed: "
	}
	for i, b := range a.result.Content {
		text := b.(*modern.TextContent).Text
		if strings.HasPrefix(text, "\n[thread ") {
			continue // it names the thread for the client's model
		}
		if i > 0 {
			words += " | "
		}
		words += text
	}
	return words
}

// structure returns the structured content of a result.
type structure struct {
	ThreadID, Content, Status string
	Threads                   []struct{ ThreadID, Content, Status, Since string }
}

func (a answer) structured() (s structure) {
	if a.result != nil {
		_ = json.Unmarshal(a.result.StructuredContent, &s) // the zero value shows in the test
	}
	return s
}

func noFile(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there (%v)", path, err)
	}
}

// pass waits in a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }
