package modern_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// loop is a Caller and a Registrar: it serves its own calls.
type loop map[string]func(context.Context, json.RawMessage) (any, error)

func (l loop) HandleRaw(method string, f func(context.Context, json.RawMessage) (any, error)) {
	l[method] = f
}

func (l loop) Call(ctx context.Context, method string, params, result any) error {
	text, err := json.Marshal(params)
	if err != nil {
		return err
	}
	got, err := l[method](ctx, text)
	if err != nil {
		return err
	}
	if text, err = json.Marshal(got); err != nil {
		return err
	}
	return json.Unmarshal(text, result)
}

// TestCallOfUnion calls a tool that asks first, then becomes a task.
func TestCallOfUnion(t *testing.T) {
	l := make(loop)
	modern.ToolsCall.Handle(l, func(_ context.Context, p *modern.CallToolRequestParams) (modern.AnyCallToolResult, error) {
		switch answer, ok := p.InputResponses["q"].(*modern.ElicitResult); {
		case !ok:
			return &modern.InputRequiredResult{RequestState: new("s"), InputRequests: modern.InputRequests{"q": &modern.ListRootsRequest{}}}, nil
		case answer.Action == modern.ElicitResultActionAccept && *p.RequestState == "s":
			return &modern.CreateTaskResult{TaskID: "t", Status: modern.TaskStatusWorking}, nil
		case answer.Action == modern.ElicitResultActionDecline:
			return &modern.CallToolResult{Content: modern.Text("declined")}, nil
		}
		return nil, nil
	})
	params := &modern.CallToolRequestParams{Name: "codex"}
	call := func() modern.AnyCallToolResult {
		r, err := modern.ToolsCall.Call(t.Context(), l, params)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	asked, ok := call().(*modern.InputRequiredResult)
	if !ok || *asked.ResultType != modern.ResultTypeInputRequired {
		t.Fatalf("got %+v", asked)
	}
	params.RequestState = asked.RequestState
	params.InputResponses = modern.InputResponses{"q": &modern.ElicitResult{Action: "accept"}}
	if task, ok := call().(*modern.CreateTaskResult); !ok || task.TaskID != "t" {
		t.Errorf("got %+v", task)
	}
	params.InputResponses["q"] = &modern.ElicitResult{Action: "decline"}
	if r, ok := call().(*modern.CallToolResult); !ok || len(r.Content) != 1 || *r.ResultType != modern.ResultTypeComplete {
		t.Errorf("got %+v", r)
	}
	params.InputResponses["q"] = &modern.ElicitResult{Action: "cancel"}
	if _, err := modern.ToolsCall.Call(t.Context(), l, params); err == nil || !strings.Contains(err.Error(), "neither result nor error") {
		t.Errorf("got %v", err)
	}
	_, err := l["tools/call"](t.Context(), json.RawMessage(`{"name":"codex"}`))
	var wrong interface{ InvalidParams() (path, why string) }
	if !errors.As(err, &wrong) {
		t.Fatalf("got %v", err)
	}
	if path, _ := wrong.InvalidParams(); path != "/_meta" {
		t.Errorf("got %v", err)
	}
}

// TestTaskCreated answers a call with a task.
func TestTaskCreated(t *testing.T) {
	created := modern.Task{TaskID: "t", CreatedAt: "c", LastUpdatedAt: "u", StatusMessage: new("m"), TTLMs: new(int64(1)), PollIntervalMs: new(int64(2))}.Created()
	text, err := modern.Encode(created)
	const want = `{"resultType":"task","createdAt":"c","lastUpdatedAt":"u","pollIntervalMs":2,"status":"working","statusMessage":"m","taskId":"t","ttlMs":1}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
	var back modern.AnyCallToolResult
	if err := modern.Decode(text, &back); err != nil {
		t.Fatal(err)
	}
	if _, ok := back.(*modern.CreateTaskResult); !ok {
		t.Errorf("it reads as %T", back)
	}
	if done := (modern.Task{Status: modern.TaskStatusCompleted}).Created(); done.Status != modern.TaskStatusCompleted {
		t.Errorf("status %s", done.Status)
	}
}

// TestOutput writes structured content of any kind.
func TestOutput(t *testing.T) {
	text, err := modern.Encode(modern.NewOutput(json.RawMessage(`[1,"a"]`)))
	const want = `{"content":[{"type":"text","text":"[1,\"a\"]"}],"resultType":"complete","structuredContent":[1,"a"]}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
}
