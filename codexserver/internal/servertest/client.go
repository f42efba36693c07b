package servertest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// Server is what a client connects to, such as a *codexserver.Server.
type Server interface {
	Serve(ctx context.Context, t jsonrpc.Transport) error
}

// Client is a client in the test's own program, of either era. It records what the server sends.
type Client struct {
	host  Host
	peer  *jsonrpc.Peer
	ended func() error // closes the client once, and waits for the server

	decisions record[string] // the last one counts
	received  record[Message]
	heard     int // how many messages Heard has returned
}

// Message is a notification or a request of the server.
type Message struct {
	Method string
	Params json.RawMessage
}

// Era is how a client speaks with its server.
type Era string

// The eras. Polls is 2026-07-28 with the extension for tasks.
const (
	Handshake Era = "handshake"
	Rounds    Era = "rounds"
	Polls     Era = "task"
)

// Host is what a client is for its server.
type Host struct {
	Era Era
	// Answer answers questions. With nil the client has no method for them.
	Answer Answer
	// Name is that of its clientInfo. Default: test.
	Name string
	// Capabilities are the members of its capabilities, besides those of its era. Default: elicitation if there is an Answer.
	Capabilities string
	// Meta are more members of the _meta of each request.
	Meta string
	// Roots is the result of roots/list. With "" the client has no such method.
	Roots string
	// Deaf is a client that does not read that a question has ended.
	Deaf bool
}

func (h *Host) capabilities() string {
	members := h.Capabilities
	if members == "" && h.Answer != nil {
		members = `"elicitation":{}`
	}
	if h.Era == Polls {
		members = strings.TrimPrefix(members+`,"extensions":{"io.modelcontextprotocol/tasks":{}}`, ",")
	}
	return members
}

// Join connects a client. One with a handshake has sent initialize. The end of the test closes it, and fails if the
// client or the server ends with an error.
func Join(t testing.TB, s Server, h Host) *Client {
	t.Helper()
	h.Name = cmp.Or(h.Name, "test")
	c := connect(t, s, h)
	if h.Era == Handshake {
		must.OK(t, c.initialize(t.Context()))
	}
	return c
}

// Dial connects a client that sends no initialize, see [Join].
func Dial(t testing.TB, s Server, a Answer) *Client {
	t.Helper()
	return connect(t, s, Host{Era: Handshake, Answer: a, Name: "test"})
}

// Connect is [Join] for a client with a handshake.
func Connect(t testing.TB, s Server, a Answer) *Client {
	t.Helper()
	return Join(t, s, Host{Era: Handshake, Answer: a})
}

func connect(t testing.TB, s Server, h Host) *Client {
	c := &Client{host: h}
	c.Decide(`{"decision":"approved"}`)
	ours, theirs := jsonrpc.Pipe()
	o := &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel}
	if h.Deaf {
		o = nil
	}
	c.peer = jsonrpc.NewPeer(ours, c, o)
	running, served := make(chan error, 1), make(chan error, 1)
	go func() { running <- c.peer.Run(context.Background()) }()
	go func() { served <- s.Serve(context.Background(), theirs) }()
	c.ended = sync.OnceValue(func() error {
		c.Close()
		return errors.Join(<-running, <-served)
	})
	t.Cleanup(func() {
		if err := c.ended(); err != nil {
			t.Errorf("client and server: %v", err)
		}
	})
	return c
}

// End ends the client's input and waits for the end of the session.
func (c *Client) End() { _ = c.ended() } // the end of the test reports the error

func (c *Client) initialize(ctx context.Context) error {
	params := fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{%s},"clientInfo":{"name":%q,"version":"1"}}`,
		mcptypes.ProtocolVersion, c.host.capabilities(), c.host.Name)
	return c.Call(ctx, mcptypes.Initialize.Name(), json.RawMessage(params), nil)
}

// Send sends a request with these members of its params, and with the _meta of the client's era. It waits for the answer.
func (c *Client) Send(ctx context.Context, method, members string) (answer json.RawMessage, err error) {
	meta := c.host.Meta
	if c.host.Era != Handshake {
		meta = strings.TrimPrefix(meta+","+metaOf(c.host.Name, c.host.capabilities()), ",")
	}
	if meta != "" {
		members += `,"_meta":{` + meta + `}`
	}
	err = c.Call(ctx, method, json.RawMessage("{"+strings.TrimPrefix(members, ",")+"}"), &answer)
	return answer, err
}

// How soon a client polls, ever less often, and how long one without an answer waits until it comes back.
const (
	firstPoll = 500 * time.Millisecond
	comesBack = 11 * time.Second
)

// Use calls a tool until it has the result, and answers each question once, in the way of the client's era. It
// returns the result, or the error, as text.
func (c *Client) Use(ctx context.Context, tool, arguments string) string {
	call := fmt.Sprintf(`"name":%q,"arguments":%s`, tool, arguments)
	raw, err := c.Send(ctx, mcptypes.ToolsCall.Name(), call)
	poll := firstPoll
	for task, known := "", map[string]bool{}; err == nil; {
		var r struct {
			TaskID, Status, RequestState string
			InputRequests                map[string]json.RawMessage
		}
		if err = json.Unmarshal(raw, &r); err != nil {
			break
		}
		task = cmp.Or(task, r.TaskID)
		answers := c.answers(ctx, r.InputRequests, known)
		responses := `,"inputResponses":{` + strings.Join(answers, ",") + `}`
		switch {
		case task != "" && r.Status != "completed" && r.Status != "cancelled":
			if len(answers) > 0 {
				_, err = c.Send(ctx, "tasks/update", fmt.Sprintf(`"taskId":%q%s`, task, responses))
			}
			if err = errors.Join(err, Wait(ctx, poll)); err == nil {
				poll += poll / 8
				raw, err = c.Send(ctx, "tasks/get", fmt.Sprintf(`"taskId":%q`, task))
			}
		case task == "" && r.RequestState != "":
			if len(answers) == 0 {
				err = Wait(ctx, comesBack)
			}
			if err == nil {
				raw, err = c.Send(ctx, mcptypes.ToolsCall.Name(),
					fmt.Sprintf(`%s,"requestState":%q%s`, call, r.RequestState, responses))
			}
		default:
			return string(raw)
		}
	}
	return err.Error()
}

// answers returns the answers to questions that are not known yet, as members. A client has none to a question that
// it drops.
func (c *Client) answers(
	ctx context.Context, requests map[string]json.RawMessage, known map[string]bool,
) (answers []string) {
	for key, request := range requests {
		if known[key] {
			continue
		}
		known[key] = true
		c.received.add(Message{mcptypes.ElicitationCreate.Name(), request})
		if said, err := c.host.Answer(ctx); err == nil && said != "" {
			answers = append(answers, fmt.Sprintf("%q:%s", key, said))
		}
	}
	return answers
}

// Call sends a request and waits for its answer.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	return c.peer.Call(ctx, method, params, result)
}

// Start sends a request, whose answer the test reads later.
func (c *Client) Start(ctx context.Context, method string, params any) *jsonrpc.Call {
	return c.peer.Start(ctx, method, params)
}

func (c *Client) Notify(ctx context.Context, method string, params any) error {
	return c.peer.Notify(ctx, method, params)
}

// Close ends the client's input. Unlike [Client.End] it waits for nothing.
func (c *Client) Close() { c.peer.Close() }

// Decide sets the answer to approval requests of September 2025.
func (c *Client) Decide(result string) { c.decisions.add(result) }

func (c *Client) ServeRPC(ctx context.Context, r *jsonrpc.Request) (any, error) {
	c.received.add(Message{r.Method, slices.Clone(r.Params)})
	switch {
	case r.IsNotification():
		return nil, nil
	case strings.HasSuffix(r.Method, "Approval"):
		all := c.decisions.list()
		return json.RawMessage(all[len(all)-1]), nil
	case r.Method == mcptypes.RootsList.Name() && c.host.Roots != "":
		return json.RawMessage(c.host.Roots), nil
	case r.Method == mcptypes.ElicitationCreate.Name() && c.host.Answer != nil:
		result, err := c.host.Answer(ctx)
		if err != nil {
			return nil, err
		}
		return json.RawMessage(result), nil
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no method %s", r.Method)
}

// Result is the part of a tool's result that most tests check.
type Result struct {
	Texts   []string // those for everybody
	Content string
	Thread  string
	IsError bool
}

// Tool calls a tool and returns its result.
func (c *Client) Tool(ctx context.Context, name string, arguments map[string]any) (Result, error) {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return Result{}, err
	}
	res, err := mcptypes.ToolsCall.Call(ctx, c, &mcptypes.CallToolRequestParams{Name: name, Arguments: raw})
	if err != nil {
		return Result{}, err
	}
	var structured struct{ ThreadID, Content string }
	if err := json.Unmarshal(res.StructuredContent, &structured); err != nil {
		return Result{}, err
	}
	r := Result{Content: structured.Content, Thread: structured.ThreadID, IsError: res.IsError != nil && *res.IsError}
	for _, block := range res.Content {
		if text := block.(*mcptypes.TextContent); text.Annotations == nil {
			r.Texts = append(r.Texts, text.Text)
		}
	}
	return r, nil
}

// Ask sends a request and returns its result or its error as text.
func (c *Client) Ask(t testing.TB, method, params string) string {
	t.Helper()
	return c.ask(t.Context(), method, params)
}

// CallTool is [Client.Ask] for a tool. The arguments are JSON.
func (c *Client) CallTool(t testing.TB, name, arguments string) string {
	t.Helper()
	return c.Ask(t, mcptypes.ToolsCall.Name(), fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))
}

// NewConversation begins a conversation by the method of September 2025.
func (c *Client) NewConversation(t testing.TB) (id string) {
	t.Helper()
	var result protocol.NewConversationResult
	must.OK(t, c.Call(t.Context(), "newConversation", json.RawMessage(`{}`), &result))
	return result.ConversationID
}

// Received returns the params of the messages of a method.
func (c *Client) Received(method string) []json.RawMessage {
	var all []json.RawMessage
	for _, m := range c.received.list() {
		if m.Method == method {
			all = append(all, m.Params)
		}
	}
	return all
}

// Events returns the types of the events of calls.
func (c *Client) Events() []string {
	var types []string
	for _, params := range c.Received("codex/event") {
		var p struct{ Msg struct{ Type string } }
		_ = json.Unmarshal(params, &p) // "" shows in the test
		types = append(types, p.Msg.Type)
	}
	return types
}

// Heard waits until the test's synctest bubble is idle, and returns what was received since
// its last call, by the same goroutine: the method, the id and the message of an event.
func (c *Client) Heard() []string {
	synctest.Wait()
	all := c.received.list()
	var lines []string
	for _, m := range all[c.heard:] {
		var p struct {
			ID  string
			Msg struct{ Message string }
		}
		_ = json.Unmarshal(m.Params, &p) // not every message has these members
		lines = append(lines, strings.Join(strings.Fields(m.Method+" "+p.ID+" "+p.Msg.Message), " "))
	}
	c.heard = len(all)
	return lines
}

// Meta is the _meta of a request of 2026-07-28, whose client cannot answer questions.
var Meta = Capable("")

// Capable is [Meta] of a client with these members of its capabilities.
func Capable(capabilities string) string { return "{" + metaOf("test", capabilities) + "}" }

// metaOf returns the members of the _meta of a client of 2026-07-28.
func metaOf(name, capabilities string) string {
	return fmt.Sprintf(`"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientInfo":{"name":%q,"version":"1"},`+
		`"io.modelcontextprotocol/clientCapabilities":{%s}`, name, capabilities)
}

// ThreadOf returns the thread's id in a tool's result.
func ThreadOf(t testing.TB, result string) string {
	t.Helper()
	var r struct {
		StructuredContent struct{ ThreadID string }
	}
	if err := json.Unmarshal([]byte(result), &r); err != nil || r.StructuredContent.ThreadID == "" {
		t.Fatalf("no threadId in %s (%v)", result, err)
	}
	return r.StructuredContent.ThreadID
}
