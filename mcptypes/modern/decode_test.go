package modern_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/internal/schematest"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// TestAnswers checks answers to approvals: only a plain accept may be read as one, with every way to decode the params.
func TestAnswers(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	ways := map[string]func([]byte, any) error{
		"Decode":       modern.Decode,
		"DecodeStrict": modern.DecodeStrict,
		"v1":           json.Unmarshal,
		"v2":           func(b []byte, v any) error { return jsonv2.Unmarshal(b, v) },
		"v2 lax": func(b []byte, v any) error {
			return jsonv2.Unmarshal(b, v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsonv2.MatchCaseInsensitiveNames(true))
		},
	}
	tests := []struct {
		answer string
		want   string // the action, "other" for another kind of answer, or the path of the fault
	}{
		{`{"action":"accept"}`, "accept"},
		{`{"action":"decline","content":{}}`, "decline"},
		{`{"acti\u006fn":"cancel"}`, "cancel"},
		{`{"action":"accept","content":{"a":"x","b":true,"c":["x","y"],"d":7}}`, "accept"},
		{`{"action":"accept","x":{"Action":"decline"}}`, "accept"},

		{`{"action":"decline","Action":"accept"}`, "/Action"}, {`{"Action":"accept","action":"decline"}`, "/Action"},
		{`{"action":"decline","ACTION":"accept"}`, "/ACTION"}, {`{"action":"decline","acti\u004fn":"accept"}`, "/actiOn"},
		{`{"action":"accept","Content":{"decision":"approved"}}`, "/Content"},
		{`{"action":"accept","content":{},"contenT":{}}`, "/contenT"}, {`{"Action":"accept"}`, "/action"},
		{`{"action":"accept","action":"decline"}`, "/action"}, {`{"action":"decline","acti\u006fn":"accept"}`, "/action"},
		{`{"action":"accept","content":{"a":1,"a":2}}`, "/content/a"}, {`{"action":"accept","x":{"a":1,"a":2}}`, "/x/a"},
		{`{"action":"Accept"}`, "/action"}, {`{"action":""}`, "/action"}, {`{"action":true}`, "/action"},
		{`{"action":["accept"]}`, "/action"}, {`{"action":null}`, "/action"},
		{`{"action":"accept","content":[]}`, "/content"},
		{`{"action":"accept","content":{"a":{}}}`, "/content/a"},
		{`{"action":"accept","content":{"a":null}}`, "/content/a"},
		{`{"action":"accept","content":{"a":["x",1]}}`, "/content/a/1"},
		{`{"decision":"approved"}`, "/roots"}, {`{}`, "/roots"}, {`"accept"`, ""}, {`null`, ""}, {`[{"action":"accept"}]`, ""},

		{`{"action":"accept","roots":[]}`, "other"},
		{`{"action":"accept","model":"m","role":"user","content":{"type":"text","text":"yes"}}`, "other"},
	}
	for _, tt := range tests {
		for way, decode := range ways {
			var p modern.CallToolRequestParams
			err := decode([]byte(`{`+meta+`,"name":"codex","inputResponses":{"q/1":`+tt.answer+`}}`), &p)
			got := "other"
			if answer, ok := p.InputResponses["q/1"].(*modern.ElicitResult); ok {
				got = string(answer.Action)
			}
			if err != nil {
				path, ok := strings.CutPrefix(schematest.PathOf(err), "/inputResponses/q~11")
				if got = path; !ok && schematest.PathOf(err) != "/inputResponses" {
					t.Errorf("%s %s: %v", way, tt.answer, err)
				}
			}
			if got != tt.want {
				t.Errorf("%s %s: %q, want %q (%v)", way, tt.answer, got, tt.want, err)
			}
		}
	}
}

// TestDuplicateAnswers checks that a duplicate key is refused.
func TestDuplicateAnswers(t *testing.T) {
	var r modern.InputResponses
	err := modern.Decode([]byte(`{"q1":{"action":"decline"},"q\u0031":{"action":"accept"}}`), &r)
	if schematest.PathOf(err) != "/q1" || !errors.Is(err, jsontext.ErrDuplicateName) {
		t.Errorf("got %v and %v", r, err)
	}
}

// TestResults checks which result of a call is decoded. A broken result, and a question
// that does not say it is one, is an error.
func TestResults(t *testing.T) {
	const question = `"inputRequests":{"q":{"method":"roots/list"}}`
	tests := []struct{ in, want, strict string }{
		{`{"resultType":"complete","content":[]}`, "call", "call"},
		{`{"resultType":"","content":[]}`, "call", "call"},
		{`{"content":[],"resultType":"input_required"}`, "input", "input"},
		{`{"resultType":"input_required","requestState":"s"}`, "input", "input"},
		{`{"resultType":"task","taskId":"t","status":"working","createdAt":"","lastUpdatedAt":"","ttlMs":null}`, "task", "task"},
		{`{"resultType":"complete","content":[],"inputRequests":{}}`, "call", "call"},
		{`{"resultType":"complete","content":null}`, "call", "/content"},

		{`{"resultType":"complete"}`, "/content", "/content"},
		{`{"resultType":"complete",` + question + `}`, "/content", "/content"},
		{`{"resultType":"later",` + question + `}`, "input", "input"}, // the schema admits it
		{`{"resultType":"task"}`, "/createdAt", "/createdAt"},
		{`{"resultType":"task","content":[]}`, "/createdAt", "/createdAt"},
		{`{"resultType":"complete","ResultType":"input_required","content":[]}`, "/ResultType", "/ResultType"},
		{`{"resultType":"complete","re\u017fultType":"input_required","content":[]}`, "/re\u017fultType", "/re\u017fultType"},
		{`{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":5}}}`, "/inputRequests/q/params", "/inputRequests/q/params"},
		{`{"resultType":"task","taskId":"t"}`, "/createdAt", "/createdAt"},
		{`{"resultType":"complete","content":5}`, "/content", "/content"},
		{`{"content":[]}`, "/resultType", "/resultType"},
		{`{"resultType":7,"content":[]}`, "/resultType", "/resultType"},
		{`{}`, "/resultType", "/resultType"},
		{`[]`, "", ""},
	}
	for _, tt := range tests {
		for _, way := range []struct {
			name   string
			decode func([]byte, any) error
			want   string
		}{{"Decode", modern.Decode, tt.want}, {"DecodeStrict", modern.DecodeStrict, tt.strict}} {
			var r modern.AnyCallToolResult
			got := ""
			if err := way.decode([]byte(tt.in), &r); err != nil {
				got = schematest.PathOf(err)
			}
			switch r.(type) {
			case *modern.CallToolResult:
				got = "call"
			case *modern.InputRequiredResult:
				got = "input"
			case *modern.CreateTaskResult:
				got = "task"
			}
			if got != way.want {
				t.Errorf("%s %s: %q, want %q", way.name, tt.in, got, way.want)
			}
		}
	}
}

// TestLenient checks what servers send against the schema: null for a required list, and
// true for a property of a tool's schema. Decode reads it, DecodeStrict refuses it.
func TestLenient(t *testing.T) {
	const cached = `"resultType":"complete","cacheScope":"private","ttlMs":0`
	tests := []struct {
		in, want string
		v        any
	}{
		{`{"tools":null}`, `{"tools":[]}`, new(mcptypes.ListToolsResult)},
		{`{"tools":null,` + cached + `}`, `{"tools":[],` + cached + `}`, new(modern.ListToolsResult)},
		{`{"content":null}`, `{"content":[]}`, new(mcptypes.CallToolResult)},
		{`{"content":null,"resultType":"complete"}`, `{"content":[],"resultType":"complete"}`, new(modern.CallToolResult)},
		{`{"completion":{"values":null}}`, `{"completion":{"values":[]}}`, new(mcptypes.CompleteResult)},
		{`{"messages":null}`, `{"messages":[]}`, new(mcptypes.GetPromptResult)},
		{`{"name":"a","inputSchema":{"type":"object","properties":{"x":true,"y":false}}}`, `{"name":"a","inputSchema":{"type":"object","properties":{"x":true,"y":false}}}`, new(mcptypes.Tool)},
		{`{"name":"a","inputSchema":{"type":"object","required":null}}`, `{"name":"a","inputSchema":{"type":"object","required":null}}`, new(mcptypes.Tool)},
	}
	for _, tt := range tests {
		decode, strict := mcptypes.Decode, mcptypes.DecodeStrict
		if strings.Contains(fmt.Sprintf("%T", tt.v), "modern.") {
			decode, strict = modern.Decode, modern.DecodeStrict
		}
		if err := strict([]byte(tt.in), tt.v); err == nil {
			t.Errorf("%T %s: DecodeStrict accepts it", tt.v, tt.in)
		}
		if err := decode([]byte(tt.in), tt.v); err != nil {
			t.Errorf("%T %s: %v", tt.v, tt.in, err)
			continue
		}
		out, err := json.Marshal(tt.v)
		if err != nil || schematest.DiffJSON(t, tt.want, string(out)) != "" {
			t.Errorf("%T %s became %s, %v, want %s", tt.v, tt.in, out, err, tt.want)
		}
	}
	// In modern, schemas are free, and "properties" is not looked at.
	var tool modern.Tool
	must.OK(t, modern.DecodeStrict([]byte(`{"name":"a","inputSchema":{"type":"object","properties":{"x":true},"required":null}}`), &tool))
}

// TestErrorsNamePackage checks that an error of this package does not begin with the name of another.
func TestErrorsNamePackage(t *testing.T) {
	var tool modern.Tool
	_, encode := modern.Encode(modern.GetTaskResult{})
	_, kind := modern.Encode(5)
	_, method := modern.ToolsCall.Call(t.Context(), answers(`{"resultType":"complete"}`), nil)
	for _, err := range []error{
		modern.Decode([]byte("{}"), &tool), modern.Decode([]byte("5"), &tool), modern.Decode(nil, tool), modern.Decode(nil, new(int)),
		json.Unmarshal([]byte("{}"), &tool), jsonv2.Unmarshal([]byte("{}"), &tool), encode, kind, method,
	} {
		if err == nil || !strings.Contains(err.Error(), "modern: ") || strings.Contains(err.Error(), "mcptypes: ") {
			t.Errorf("got %v", err)
		}
	}
}

// answers is a Caller that returns the same result for every call.
type answers string

func (a answers) Call(_ context.Context, _ string, _, result any) error {
	return json.Unmarshal([]byte(a), result)
}

// TestEnvelope checks that the members that JSON-RPC adds to a message are not among its unknown members.
func TestEnvelope(t *testing.T) {
	var asked modern.InputRequest
	if err := modern.Decode([]byte(`{"jsonrpc":"2.0","id":7,"method":"roots/list"}`), &asked); err != nil || asked.(*modern.ListRootsRequest).Extra != nil {
		t.Errorf("got %v, %v", asked, err)
	}
}

// TestZeroMeta checks that a zero Meta names the version of this package.
func TestZeroMeta(t *testing.T) {
	got, err := modern.Encode(modern.CallToolRequestParams{Name: "a"})
	const want = `{"_meta":{"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name":"a"}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	// A version that was read is written unchanged, even if it is empty.
	const empty = `{"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/protocolVersion":""}`
	var meta modern.RequestMetaObject
	must.OK(t, modern.DecodeStrict([]byte(empty), &meta))
	if got, err := modern.Encode(meta); err != nil || string(got) != empty {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestConversions compiles only if the fields are equal.
func TestConversions(t *testing.T) {
	_ = modern.TextContent(mcptypes.TextContent{})
	_ = modern.ImageContent(mcptypes.ImageContent{})
	_ = modern.AudioContent(mcptypes.AudioContent{})
	_ = modern.TextResourceContents(mcptypes.TextResourceContents{})
	_ = modern.BlobResourceContents(mcptypes.BlobResourceContents{})
	_ = modern.PromptReference(mcptypes.PromptReference{})
	_ = modern.ResourceTemplateReference(mcptypes.ResourceTemplateReference{})
	var _ modern.ContentBlock = (*modern.TextContent)(&mcptypes.TextContent{Text: "a"})
}

func TestEncode(t *testing.T) {
	task := modern.Task{TaskID: "t", CreatedAt: "c", LastUpdatedAt: "l", PollIntervalMs: new(int64(500))}
	form := &modern.ElicitRequest{Params: &modern.ElicitRequestFormParams{
		Message: "Run it?", Mode: new(modern.ElicitModeForm),
		RequestedSchema: modern.ElicitSchema{Properties: map[string]modern.PrimitiveSchemaDefinition{
			"decision": &modern.TitledSingleSelectEnumSchema{OneOf: []modern.EnumOption{{Const: "yes", Title: "Yes"}}},
		}},
	}}
	const taskText = `"createdAt":"c","lastUpdatedAt":"l","pollIntervalMs":500,`
	tests := []struct {
		v    any
		want string
	}{
		{modern.CallToolResult{Content: modern.Text("done")}, `{"content":[{"type":"text","text":"done"}],"resultType":"complete"}`},
		{modern.CallToolResult{StructuredContent: json.RawMessage("null")}, `{"content":[],"resultType":"complete","structuredContent":null}`},
		{modern.CallToolResult{ResultType: new(modern.ResultType(""))}, `{"content":[],"resultType":""}`},
		{modern.EmptyResult{}, `{"resultType":"complete"}`},
		{modern.InputRequiredResult{InputRequests: modern.InputRequests{"q1": form}, RequestState: new("s")},
			`{"inputRequests":{"q1":{"method":"elicitation/create","params":{"message":"Run it?","mode":"form",` +
				`"requestedSchema":{"type":"object","properties":{"decision":{"type":"string","oneOf":[{"const":"yes","title":"Yes"}]}}}}}},` +
				`"requestState":"s","resultType":"input_required"}`},
		{modern.GetTaskResult{Task: task.Working()}, `{"resultType":"complete",` + `"status":"working",` + taskText + `"taskId":"t","ttlMs":null}`},
		{modern.GetTaskResult{Meta: &modern.ResultMetaObject{}, Task: task.Completed(json.RawMessage(`{"content":[]}`))},
			`{"resultType":"complete","_meta":{},"status":"completed",` + taskText + `"result":{"content":[]},"taskId":"t","ttlMs":null}`},
		{modern.TaskStatusNotificationParams{Task: task.InputRequired(nil)},
			`{"status":"input_required","createdAt":"c","inputRequests":{},"lastUpdatedAt":"l","pollIntervalMs":500,"taskId":"t","ttlMs":null}`},
		{modern.CreateTaskResult{TaskID: "t", Status: modern.TaskStatusWorking, TTLMs: new(int64(1))},
			`{"resultType":"task","createdAt":"","lastUpdatedAt":"","status":"working","taskId":"t","ttlMs":1}`},
		{modern.InputResponses{"q": &modern.ElicitResult{Action: "accept", Content: map[string]modern.ElicitValue{
			"a": mcptypes.ElicitStrings("x", "y"), "b": mcptypes.ElicitInt(7)}}},
			`{"q":{"action":"accept","content":{"a":["x","y"],"b":7}}}`},
		{modern.SamplingMessage{Role: modern.RoleUser, Content: modern.SamplingContentList{&modern.TextContent{Text: "a"}}},
			`{"content":[{"type":"text","text":"a"}],"role":"user"}`},
		{modern.UnsupportedProtocolVersionError{Error: modern.UnsupportedProtocolVersion{
			Data: modern.UnsupportedProtocolVersionData{Requested: "1", Supported: []string{"2"}}, Message: "m"}},
			`{"jsonrpc":"2.0","error":{"code":-32022,"data":{"requested":"1","supported":["2"]},"message":"m"}}`},
		{modern.ServerCapabilities{Extensions: map[string]modern.JSONObject{modern.ExtensionTasks: {}}},
			`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`},
		{modern.TasksExtensionCapability{}, `{}`},
		{modern.NewOutput(json.RawMessage(`[1,"a"]`)), `{"content":[{"type":"text","text":"[1,\"a\"]"}],"resultType":"complete","structuredContent":[1,"a"]}`},
		{modern.Task{TaskID: "t", CreatedAt: "c", LastUpdatedAt: "u", StatusMessage: new("m"), TTLMs: new(int64(1)), PollIntervalMs: new(int64(2))}.Created(),
			`{"resultType":"task","createdAt":"c","lastUpdatedAt":"u","pollIntervalMs":2,"status":"working","statusMessage":"m","taskId":"t","ttlMs":1}`},
		{modern.Task{Status: modern.TaskStatusCompleted}.Created(), `{"resultType":"task","createdAt":"","lastUpdatedAt":"","status":"completed","taskId":"","ttlMs":null}`},
	}
	for _, tt := range tests {
		got, err := modern.Encode(tt.v)
		if diff := cmp.Diff(tt.want, string(got)); err != nil || diff != "" {
			t.Errorf("%T: %v (-want +got)\n%s", tt.v, err, diff)
		}
		if _, ok := tt.v.(jsonv2.MarshalerTo); !ok {
			continue
		}
		v1, err1 := json.Marshal(tt.v)
		v2, err2 := jsonv2.Marshal(tt.v)
		if err1 != nil || err2 != nil || string(v1) != tt.want || string(v2) != tt.want {
			t.Errorf("%T: encoding/json %s, %v; json/v2 %s, %v", tt.v, v1, err1, v2, err2)
		}
	}
}

func TestEncodeErrors(t *testing.T) {
	task := modern.Task{}
	extra := map[string]json.RawMessage{"resultType": json.RawMessage(`"task"`)}
	tests := []struct {
		v    any
		want string
	}{
		{modern.GetTaskResult{}, "modern: encode: required, but absent"},
		{modern.GetTaskResult{Task: (*modern.WorkingTask)(nil)}, "modern: encode: required, but absent"},
		{modern.GetTaskResult{Task: &modern.Unknown{Tag: "paused", Raw: json.RawMessage(`{"status":"paused"}`)}}, "modern: encode: required, but absent"},
		{modern.GetTaskResult{Task: modern.Task{Extra: extra}.Working()}, `modern: encode: a known member is among the unknown ones: "resultType"`},
		{modern.GetTaskResult{Task: modern.Task{Extra: map[string]json.RawMessage{"ResultType": extra["resultType"]}}.Working()},
			`modern: encode: an unknown member differs from a known one only by case: "ResultType"`},
		{modern.ElicitResult{Action: "decline", Extra: map[string]json.RawMessage{"Action": json.RawMessage(`"accept"`)}},
			`modern: encode: an unknown member differs from a known one only by case: "Action"`},
		{modern.GetTaskResult{Task: task.Completed(nil)}, "modern: encode: /result: required, but absent"},
		{modern.GetTaskResult{Task: task.Completed(json.RawMessage("[]"))}, "modern: encode: /result: want a JSON object"},
		{modern.Task{}, `modern: encode: /status: want one of "working", "input_required", "completed", "failed", "cancelled", have ""`},
		{modern.WorkingTask{PollIntervalMs: new(int64(1 << 60))},
			"modern: encode: /pollIntervalMs: want an integer from -9007199254740991 to 9007199254740991, have 1152921504606846976"},
		{modern.ListToolsResult{CacheScope: "private", TTLMs: -1}, "modern: encode: /ttlMs: want an integer from 0 to 9223372036854775807, have -1"},
		{modern.CompleteResult{Completion: modern.CompleteResultCompletion{Values: make([]string, 101)}},
			"modern: encode: /completion/values: want at most 100 elements, have 101"},
		{modern.InputRequests{"q": nil}, "modern: encode: /q: required, but absent"},
		{modern.InputRequests{"q": &modern.ElicitRequest{}}, "modern: encode: /q/params: required, but absent"},
		{modern.InputResponses{"q": &modern.ElicitResult{}}, `modern: encode: /q/action: want one of "accept", "cancel", "decline", have ""`},
		{modern.ElicitResult{Action: "accept", Content: map[string]modern.ElicitValue{"a": {}}}, "modern: encode: /content/a: required, but absent"},
		{modern.CancelledNotificationParams{}, "modern: encode: /requestId: required, but absent"},
		{5, "modern: cannot encode int"},
	}
	for _, tt := range tests {
		got, err := modern.Encode(tt.v)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%T: got %s, %v, want %s", tt.v, got, err, tt.want)
		}
	}
}

// TestTask makes a task of each status and compares the members that all share.
func TestTask(t *testing.T) {
	want := modern.Task{
		TaskID: "t", CreatedAt: "c", LastUpdatedAt: "l", StatusMessage: new("m"), TTLMs: new(int64(1)), PollIntervalMs: new(int64(2)),
		Extra: map[string]json.RawMessage{"x": json.RawMessage("1")},
	}
	for status, d := range map[modern.TaskStatus]modern.DetailedTask{
		modern.TaskStatusWorking:       want.Working(),
		modern.TaskStatusInputRequired: want.InputRequired(modern.InputRequests{}),
		modern.TaskStatusCompleted:     want.Completed(json.RawMessage("{}")),
		modern.TaskStatusFailed:        want.Failed(modern.Error{Code: -1, Message: "m"}),
		modern.TaskStatusCancelled:     want.Cancelled(),
	} {
		text := must.Get(modern.Encode(&modern.GetTaskResult{Task: d}))(t)
		var r modern.GetTaskResult
		must.OK(t, modern.DecodeStrict(text, &r))
		got, ok := modern.TaskOf(r.Task)
		want.Status = status
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("%s: %v (-want +got)\n%s", status, ok, diff)
		}
	}
	for _, d := range []modern.DetailedTask{nil, &modern.Unknown{}} {
		if got, ok := modern.TaskOf(d); ok {
			t.Errorf("%T is %v", d, got)
		}
	}
}

// TestUnknownStatus checks that a task with an unknown status is kept as Unknown by itself,
// and refused if its members are mixed with others.
func TestUnknownStatus(t *testing.T) {
	const text = `{"resultType":"complete","status":"paused","taskId":"t"}`
	var d modern.DetailedTask
	if err := modern.Decode([]byte(text), &d); err != nil {
		t.Error(err)
	} else if got, err := modern.Encode(d); err != nil || string(got) != text {
		t.Errorf("%s, %v", got, err)
	}
	var r modern.GetTaskResult
	if err := modern.Decode([]byte(text), &r); schematest.PathOf(err) != "/status" {
		t.Error(err)
	}
}
