package modern_test

import (
	"encoding/json"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/internal/schematest"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

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
		text, err := modern.Encode(&modern.GetTaskResult{Task: d})
		if err != nil {
			t.Fatal(err)
		}
		var r modern.GetTaskResult
		if err := modern.DecodeStrict(text, &r); err != nil {
			t.Fatal(err)
		}
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
