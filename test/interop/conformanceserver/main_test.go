package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connect serves the server in memory. What it sends besides answers goes to notified.
func connect(t *testing.T, notified jsonrpc.Handler) *jsonrpc.Peer {
	t.Helper()
	ours, theirs := jsonrpc.Pipe()
	served := make(chan error, 1)
	go func() { served <- serve(context.Background(), theirs) }()
	client := jsonrpc.NewPeer(ours, notified, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	go func() { _ = client.Run(context.Background()) }()
	t.Cleanup(func() {
		_ = client.Close()
		<-client.Done()
		if err := <-served; err != nil {
			t.Error("served:", err)
		}
	})
	return client
}

const (
	version = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
	able    = `{"_meta":{` + version + `,"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	unable  = `{"_meta":{` + version + `,"io.modelcontextprotocol/clientCapabilities":{}}`
)

// do calls a method with the metadata of a client that can do everything, and returns the
// result or the error.
func do(t *testing.T, c *jsonrpc.Peer, method, meta, rest string) (map[string]any, *jsonrpc.Error) {
	t.Helper()
	if rest != "" {
		rest = "," + rest
	}
	var result map[string]any
	err := c.Call(t.Context(), method, json.RawMessage(meta+rest+"}"), &result)
	var failure *jsonrpc.Error
	if err != nil && !errors.As(err, &failure) {
		t.Fatal(err)
	}
	return result, failure
}

func TestEveryRequestSaysWhatItIs(t *testing.T) {
	c := connect(t, nil)
	for _, tt := range []struct {
		name, method, params string
		code                 jsonrpc.Code
		data                 string
	}{
		{"no metadata", "tools/list", `{}`, modern.CodeInvalidParams, ""},
		{"no version", "tools/list", `{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}`, modern.CodeInvalidParams, ""},
		{"no capabilities", "tools/list", `{"_meta":{` + version + `}}`, modern.CodeInvalidParams, ""},
		{"another version", "tools/list", strings.Replace(unable, "2026-07-28", "2025-06-18", 1) + `}`, modern.CodeUnsupportedProtocolVersion,
			`{"requested":"2025-06-18","supported":["2026-07-28"]}`},
		{"initialize", "initialize", unable + `}`, modern.CodeMethodNotFound, ""},
		{"no such tool", "tools/call", unable + `,"name":"x"}`, modern.CodeInvalidParams, ""},
		{"a capability", "tools/call", unable + `,"name":"test_missing_capability"}`, modern.CodeMissingRequiredClientCapability,
			`{"requiredCapabilities":{"sampling":{}}}`},
		{"the extension", "tasks/get", unable + `,"taskId":"x"}`, modern.CodeMissingRequiredClientCapability,
			`{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`},
		{"no such task", "tasks/get", able + `,"taskId":"x"}`, modern.CodeInvalidParams, ""},
		{"responses that are none", "tools/call", able + `,"name":"greet","inputResponses":7}`, modern.CodeInvalidParams, ""},
	} {
		err := c.Call(t.Context(), tt.method, json.RawMessage(tt.params), nil)
		var failure *jsonrpc.Error
		if !errors.As(err, &failure) || failure.Code != tt.code || tt.data != "" && string(failure.Data) != tt.data {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

const asksOK = `"name":"test_input_required_result_request_state"`

// ask calls the tool that wants a yes, and returns the state of its round.
func ask(t *testing.T, c *jsonrpc.Peer) string {
	t.Helper()
	r, err := do(t, c, "tools/call", able, asksOK+`,"arguments":{"a":1,"b":2}`)
	if err != nil || r["resultType"] != "input_required" {
		t.Fatal(r, err)
	}
	return r["requestState"].(string)
}

func TestRounds(t *testing.T) {
	c := connect(t, nil)
	const arguments = `,"arguments":{"b":2,"a":1}`
	for _, tt := range []struct {
		name, call, responses string
		want                  string // the text, or input_required
		code                  jsonrpc.Code
	}{
		{"accept", asksOK + arguments, `{"confirm":{"action":"accept","content":{"ok":true}}}`, "state-ok", 0},
		{"accept and what was not asked", asksOK + arguments, `{"confirm":{"action":"accept","content":{"ok":true}},"x":[7]}`, "state-ok", 0},
		{"accept without what the form requires", asksOK + arguments, `{"confirm":{"action":"accept"}}`, "not done: the approval answer was not understood", 0},
		{"decline", asksOK + arguments, `{"confirm":{"action":"decline"}}`, "not done: declined", 0},
		{"cancel", asksOK + arguments, `{"confirm":{"action":"cancel"}}`, "not done: the client cancelled the approval request", 0},
		{"flat", asksOK + arguments, `{"confirm":{"decision":"approved"}}`, "not done: the approval answer was not understood", 0},
		{"not understood", asksOK + arguments, `{"confirm":{"action":"ok"}}`, "not done: the approval answer was not understood", 0},
		{"no answer", asksOK + arguments, `{"x":{"action":"accept"}}`, "input_required", 0},
		{"no object", asksOK + arguments, `{"confirm":true}`, "input_required", 0},
		{"twice", asksOK + arguments, `{"confirm":{"action":"accept"},"confirm":{"action":"accept"}}`, "", modern.CodeInvalidParams},
		{"other arguments", asksOK + `,"arguments":{"a":1,"b":3}`, `{"confirm":{"action":"accept"}}`, "", modern.CodeInvalidParams},
		{"another tool", `"name":"test_streaming_elicitation"` + arguments, `{"confirm":{"action":"accept"}}`, "", modern.CodeInvalidParams},
	} {
		state := ask(t, c)
		again := tt.call + fmt.Sprintf(`,"requestState":%q,"inputResponses":%s`, state, tt.responses)
		r, err := do(t, c, "tools/call", able, again)
		switch {
		case tt.code != 0:
			if err == nil || err.Code != tt.code {
				t.Errorf("%s: %v, %v", tt.name, r, err)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want == "input_required":
			if r["resultType"] != tt.want || r["requestState"] == state {
				t.Errorf("%s: %v", tt.name, r)
			}
		case said(r) != tt.want:
			t.Errorf("%s: %v", tt.name, r)
		}
		if r, err := do(t, c, "tools/call", able, again); err == nil || err.Code != modern.CodeInvalidParams {
			t.Errorf("%s, repeated: %v, %v", tt.name, r, err)
		}
	}
	if r, err := do(t, c, "tools/call", able, asksOK+`,"requestState":"x","inputResponses":{"confirm":{"action":"accept"}}`); err == nil {
		t.Errorf("a state made up: %v", r)
	}
	if r, err := do(t, c, "tools/call", able, asksOK+`,"inputResponses":{"confirm":{"action":"accept"}}`); err != nil || r["resultType"] != "input_required" {
		t.Errorf("an answer to nothing: %v, %v", r, err)
	}
	r, err := do(t, c, "tools/call", unable, asksOK)
	if err != nil || said(r) != "not done: this MCP client cannot show approval requests" {
		t.Errorf("a client that cannot be asked: %v, %v", r, err)
	}
}

func said(r map[string]any) string {
	content, _ := r["content"].([]any)
	if len(content) == 0 {
		return ""
	}
	return content[0].(map[string]any)["text"].(string)
}

// until polls a task until it has a status.
func until(t *testing.T, c *jsonrpc.Peer, id, status string) map[string]any {
	t.Helper()
	for {
		r, err := do(t, c, "tasks/get", able, fmt.Sprintf(`"taskId":%q`, id))
		if err != nil {
			t.Fatal(err)
		}
		if r["status"] == status {
			return r
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("the task is %v", r["status"])
		}
	}
}

func TestTasks(t *testing.T) {
	c := connect(t, nil)
	start := func(call string) string {
		t.Helper()
		r, err := do(t, c, "tools/call", able, call)
		if err != nil || r["resultType"] != "task" {
			t.Fatal(r, err)
		}
		return r["taskId"].(string)
	}
	update := func(id, responses string) {
		t.Helper()
		if r, err := do(t, c, "tasks/update", able, fmt.Sprintf(`"taskId":%q,"inputResponses":%s`, id, responses)); err != nil || r["resultType"] != "complete" {
			t.Fatal(r, err)
		}
	}

	id := start(`"name":"multi_input"`)
	until(t, c, id, "input_required")
	update(id, `{"q1":{"action":"accept","content":{"name":"A"}},"x":{}}`)
	half := until(t, c, id, "input_required")["inputRequests"].(map[string]any)
	if len(half) != 1 || half["q2"] == nil {
		t.Errorf("open after one answer: %v", half)
	}
	update(id, `{"q1":{"action":"decline"},"q2":{"decision":"approved"}}`) // the first answer to q1 counts
	if r := until(t, c, id, "completed")["result"].(map[string]any); said(r) != "approved, denied" {
		t.Errorf("got %v", r)
	}

	id = start(`"name":"slow_compute","arguments":{"seconds":60}`)
	for range 2 { // cancelling again changes nothing
		if r, err := do(t, c, "tasks/cancel", able, fmt.Sprintf(`"taskId":%q`, id)); err != nil || r["resultType"] != "complete" {
			t.Fatal(r, err)
		}
		until(t, c, id, "cancelled")
	}
	if r := until(t, c, start(`"name":"protocol_error_job"`), "failed"); r["error"].(map[string]any)["code"] != float64(modern.CodeInternal) {
		t.Errorf("got %v", r)
	}
	if r, err := do(t, c, "tools/call", unable, `"name":"slow_compute","arguments":{"seconds":0,"label":"x"}`); err != nil || said(r) != "computed x" {
		t.Errorf("got %v, %v", r, err)
	}
	start(`"name":"confirm_delete"`) // ends with the server
}

func TestSubscription(t *testing.T) {
	notified := make(chan string, 10)
	c := connect(t, jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
		notified <- r.Method + " " + string(r.Params)
		return nil, nil
	}))
	ctx, cancel := context.WithCancel(t.Context())
	open := c.Start(ctx, "subscriptions/listen", json.RawMessage(unable+`,"notifications":{"toolsListChanged":true}}`))
	want := []string{`notifications/subscriptions/acknowledged {"_meta":{"io.modelcontextprotocol/subscriptionId":0},"notifications":{"toolsListChanged":true}}`}
	got := []string{<-notified}
	for _, tool := range []string{"test_trigger_prompt_change", "test_trigger_tool_change"} {
		if _, err := do(t, c, "tools/call", unable, fmt.Sprintf(`"name":%q`, tool)); err != nil {
			t.Fatal(err)
		}
	}
	want = append(want, `notifications/tools/list_changed {"_meta":{"io.modelcontextprotocol/subscriptionId":0}}`)
	got = append(got, <-notified)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	cancel()
	<-open.Done()
	if err := c.Flush(t.Context()); err != nil { // or the server would wait for its request
		t.Error(err)
	}
}

// The official Go SDK finds its way by itself.
func TestGoSDK(t *testing.T) {
	for _, answer := range []string{"accept", "decline", "cancel"} {
		serverIn, clientOut := io.Pipe()
		clientIn, serverOut := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- serve(t.Context(), jsonrpc.Lines(serverIn, serverOut, serverOut)) }()
		client, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: answer, Content: map[string]any{"ok": true}}, nil
			},
		}).Connect(t.Context(), &mcp.IOTransport{Reader: clientIn, Writer: clientOut}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "test_streaming_elicitation"})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"accept": "state-ok", "decline": "not done: declined", "cancel": "not done: the client cancelled the approval request"}[answer]
		if got := r.Content[0].(*mcp.TextContent).Text; got != want || r.IsError == (answer == "accept") {
			t.Errorf("%s: %q", answer, got)
		}
		if got := client.InitializeResult().ProtocolVersion; got != modern.ProtocolVersion {
			t.Errorf("%s is spoken", got)
		}
		if err := errors.Join(client.Close(), <-served); err != nil {
			t.Error(err)
		}
	}
}
