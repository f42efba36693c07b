package protocol_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

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
	if got := protocol.TextOf(items); got != "a\nb" {
		t.Errorf("%q", got)
	}
}

// TestValues pins the values of the configuration that clients may send.
func TestValues(t *testing.T) {
	got := map[string]any{
		"approval": protocol.ApprovalPolicies(), "sandbox": protocol.SandboxModes(), "effort": protocol.ReasoningEfforts(),
	}
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
