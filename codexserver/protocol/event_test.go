package protocol_test

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestEventsRoundTrip reads events that Codex 0.42.0 sent, at least one of every type, and writes the same again.
func TestEventsRoundTrip(t *testing.T) {
	f := must.Get(os.Open("testdata/events.ndjson"))(t)
	defer f.Close()
	types := map[string]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m, err := protocol.ParseEvent(lines.Bytes())
		if err != nil {
			t.Errorf("%s: %v", lines.Text(), err)
			continue
		}
		if _, raw := m.(protocol.RawEvent); raw {
			t.Errorf("%s: not a known type", lines.Text())
		}
		types[m.EventType()] = true
		b, err := protocol.AppendEvent(nil, m)
		if err != nil {
			t.Errorf("%s: %v", lines.Text(), err)
			continue
		}
		var want, got any
		must.OK(t, json.Unmarshal(lines.Bytes(), &want))
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		must.Equal(t, "round trip", want, got)
	}
	must.OK(t, lines.Err())
	if len(types) < 25 {
		t.Errorf("only %d types of event in testdata: %v", len(types), types)
	}
}

func TestUnknownEventIsKept(t *testing.T) {
	const in = `{"type":"entered_review_mode","prompt":"p","n":9007199254740993}`
	m := must.Get(protocol.ParseEvent([]byte(in)))(t)
	out := must.Get(protocol.AppendEvent(nil, m))(t)
	must.Equal(t, "the event", in, string(out))
}

func TestEventErrors(t *testing.T) {
	for _, m := range []protocol.EventMsg{protocol.AgentMessageDelta{Delta: "a\xff"}, protocol.AgentMessage{Message: "a\xff"}} {
		if b, err := protocol.AppendEvent([]byte("before"), m); err == nil || string(b) != "before" {
			t.Errorf("%#v: %s, %v", m, b, err)
		}
	}
	for _, in := range []string{`5`, `{}x`, `{"type":5}`, `{"type":"agent_message","message":5}`, `{"type":"agent_message","message":"a","message":"b"}`} {
		if m, err := protocol.ParseEvent([]byte(in)); err == nil {
			t.Errorf("%s: read as %#v", in, m)
		}
	}
}

func TestLinesOfChange(t *testing.T) {
	for _, tt := range []struct {
		name           string
		change         protocol.FileChange
		added, removed int
		diff           string // "" for that of an update
	}{
		{"nothing", protocol.FileChange{}, 0, 0, ""},
		{"an empty file", protocol.FileChange{Add: &protocol.FileContent{}}, 0, 0, ""},
		{"a file", protocol.FileChange{Add: &protocol.FileContent{Content: "a\n\nb\n"}}, 3, 0, "+a\n+\n+b"},
		{"a file without an end of line", protocol.FileChange{Delete: &protocol.FileContent{Content: "a\nb"}}, 0, 2, "-a\n-b\n\\ No newline at end of file"},
		{"an update", protocol.FileChange{Update: &protocol.FileUpdate{UnifiedDiff: "@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n\\ No newline at end of file\n"}}, 2, 1, ""},
	} {
		if diff := tt.change.Diff(); tt.change.Update == nil && diff != tt.diff {
			t.Errorf("%s: %q, want %q", tt.name, diff, tt.diff)
		}
		if added, removed := tt.change.Lines(); added != tt.added || removed != tt.removed {
			t.Errorf("%s: +%d -%d, want +%d -%d", tt.name, added, removed, tt.added, tt.removed)
		}
	}
}

// TestInputItems reads and writes each kind of input, and refuses others.
func TestInputItems(t *testing.T) {
	for text, want := range map[string]protocol.InputItem{
		`{"type":"text","data":{"text":""}}`:         {Type: protocol.InputText},
		`{"type":"text","data":{"text":"a"}}`:        {Type: protocol.InputText, Text: "a"},
		`{"type":"image","data":{"image_url":"b"}}`:  {Type: protocol.InputImage, ImageURL: "b"},
		`{"type":"localImage","data":{"path":"/c"}}`: {Type: protocol.InputLocalImage, Path: "/c"},
		// Refused.
		`{"type":"text","data":{"path":"/c"}}`: {}, `{"type":"image","data":{"text":"a"}}`: {}, `{"type":"localImage","data":{"text":"a"}}`: {},
		`{"type":"audio","data":{"text":"a"}}`: {}, `{"data":{"text":"a"}}`: {}, `{"type":"text"}`: {}, `{"type":"text","data":[]}`: {},
	} {
		got := protocol.InputItem{Text: "old", Path: "old", ImageURL: "old"}
		err := json.Unmarshal([]byte(text), &got)
		if (err == nil) != (want.Type != "") || err == nil && got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if written, err := json.Marshal(want); (err == nil) != (want.Type != "") || err == nil && string(written) != text {
			t.Errorf("%+v: %s, %v", want, written, err)
		}
	}
	must.Equal(t, "the input", []protocol.InputItem{{Type: protocol.InputText, Text: "a"}}, protocol.TextInput("a"))
	items := []protocol.InputItem{{Type: protocol.InputText, Text: "a"}, {Type: protocol.InputImage, Text: "no"}, {Type: protocol.InputLocalImage, Text: "no"}, {Type: protocol.InputText, Text: "b"}}
	must.Equal(t, "the text", "a\nb", protocol.TextOf(items))
}

// TestValues pins the values of the configuration that clients may send.
func TestValues(t *testing.T) {
	got := map[string]any{"approval": protocol.ApprovalPolicies(), "sandbox": protocol.SandboxModes(), "effort": protocol.ReasoningEfforts()}
	want := map[string]any{
		"approval": []protocol.ApprovalPolicy{"untrusted", "on-failure", "on-request", "never"},
		"sandbox":  []protocol.SandboxMode{"read-only", "workspace-write", "danger-full-access"},
		"effort":   []protocol.ReasoningEffort{"minimal", "low", "medium", "high"},
	}
	must.Equal(t, "the values", want, got)
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{`{"secs":0,"nanos":0}`: 0, `{"secs":3,"nanos":5}`: 3*time.Second + 5, `{"secs":7200,"nanos":999999999}`: 2*time.Hour + time.Second - 1} {
		d := protocol.Duration(1)
		if err := json.Unmarshal([]byte(text), &d); err != nil || time.Duration(d) != want {
			t.Errorf("%s: %v, %v", text, time.Duration(d), err)
		}
		if written, err := json.Marshal(protocol.Duration(want)); err != nil || string(written) != text {
			t.Errorf("%v: %s, %v", want, written, err)
		}
	}
	var d protocol.Duration
	if err := json.Unmarshal([]byte(`{"secs":"3"}`), &d); err == nil {
		t.Error("a wrong duration is read")
	}
}

// Items of recorded rollouts and requests: each is read and written as it was.
var recordedItems = []string{
	`{"type":"message","role":"user","content":[{"type":"input_text","text":"run ` + "`git init`" + `\n"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}`,
	`{"type":"message","role":"assistant","content":[{"type":"output_text","text":""}]}`,
	`{"type":"message","role":"assistant","content":[]}`,
	`{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"ENC"}`,
	`{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"r"}],"encrypted_content":null}`,
	`{"type":"function_call","name":"shell","arguments":"{\"command\": [\"git\", \"init\"], \"workdir\": null}","call_id":"call1234"}`,
	`{"type":"function_call_output","call_id":"call1234","output":"{\"output\":\"x\\n\"}"}`,
	`{"type":"custom_tool_call","status":"completed","call_id":"c","name":"apply_patch","input":"*** Begin Patch\n"}`,
	`{"type":"custom_tool_call_output","call_id":"c","output":"ok"}`,
	`{"type":"local_shell_call","call_id":"c","status":"completed","action":{"type":"exec","command":["ls"],"timeout_ms":1000,"working_directory":"/"}}`,
	`{"type":"web_search_call","id":"ws","status":"completed","action":{"type":"search","query":"q"}}`,
}

func TestItemsRoundTrip(t *testing.T) {
	for _, raw := range recordedItems {
		item, err := protocol.ParseItem([]byte(raw))
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		got, err := protocol.AppendItem([]byte("x"), item)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		must.Equal(t, "the item", "x"+raw, string(got))
	}
}

func TestItemsOfAnotherShape(t *testing.T) {
	for _, raw := range []string{``, `7`, `{"type":"message","role":7}`, `{"type":"function_call","arguments":{}}`, `{"type":"message"`} {
		if item, err := protocol.ParseItem([]byte(raw)); err == nil {
			t.Errorf("%s: read as %#v", raw, item)
		}
	}
}

func TestItemsReplaceInvalidUTF8(t *testing.T) {
	for _, item := range []protocol.ResponseItem{
		protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{{Type: "input_text", Text: "a\xffb"}}},
		protocol.FunctionCallItem{Name: "n", Arguments: "a\xffb", CallID: "c"},
		protocol.FunctionCallOutputItem{CallID: "c", Output: "a\xffb"},
	} {
		raw, err := protocol.AppendItem(nil, item)
		if err != nil {
			t.Errorf("%s: %v", item.ItemType(), err)
			continue
		}
		if _, err := protocol.ParseItem(raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
