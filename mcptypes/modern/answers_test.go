package modern_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/internal/schematest"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// TestAnswers checks answers to approvals: only a plain accept may be read as one, with
// every way to decode the params.
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

		{`{"action":"decline","Action":"accept"}`, "/Action"},
		{`{"Action":"accept","action":"decline"}`, "/Action"},
		{`{"action":"decline","ACTION":"accept"}`, "/ACTION"},
		{`{"action":"decline","acti\u004fn":"accept"}`, "/actiOn"},
		{`{"action":"accept","Content":{"decision":"approved"}}`, "/Content"},
		{`{"action":"accept","content":{},"contenT":{}}`, "/contenT"},
		{`{"Action":"accept"}`, "/action"},
		{`{"action":"accept","action":"decline"}`, "/action"},
		{`{"action":"decline","acti\u006fn":"accept"}`, "/action"},
		{`{"action":"accept","content":{"a":1,"a":2}}`, "/content/a"},
		{`{"action":"accept","x":{"a":1,"a":2}}`, "/x/a"},
		{`{"action":"Accept"}`, "/action"},
		{`{"action":""}`, "/action"},
		{`{"action":true}`, "/action"},
		{`{"action":["accept"]}`, "/action"},
		{`{"action":null}`, "/action"},
		{`{"action":"accept","content":[]}`, "/content"},
		{`{"action":"accept","content":{"a":{}}}`, "/content/a"},
		{`{"action":"accept","content":{"a":null}}`, "/content/a"},
		{`{"action":"accept","content":{"a":["x",1]}}`, "/content/a/1"},
		{`{"decision":"approved"}`, "/roots"},
		{`{}`, "/roots"},
		{`"accept"`, ""},
		{`null`, ""},
		{`[{"action":"accept"}]`, ""},

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

// TestResults checks which result of a call is decoded.
func TestResults(t *testing.T) {
	tests := []struct{ in, want string }{
		{`{"resultType":"complete","content":[]}`, "call"},
		{`{"resultType":"","content":[]}`, "call"},
		{`{"content":[],"resultType":"input_required"}`, "input"},
		{`{"resultType":"input_required","requestState":"s"}`, "input"},
		{`{"resultType":"task","taskId":"t","status":"working","createdAt":"","lastUpdatedAt":"","ttlMs":null}`, "task"},
		{`{"resultType":"complete","content":[],"inputRequests":{}}`, "call"},
		{`{"resultType":"complete","ResultType":"input_required","content":[]}`, "/ResultType"},
		{`{"resultType":"complete","re\u017fultType":"input_required","content":[]}`, "/re\u017fultType"},
		{`{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":5}}}`, "/inputRequests/q/params"},
		{`{"resultType":"task","taskId":"t"}`, "/createdAt"},
		{`{"resultType":"complete","content":5}`, "/content"},
		{`{"content":[]}`, "/resultType"},
		{`{"resultType":7,"content":[]}`, "/resultType"},
		{`{}`, "/resultType"},
		{`[]`, ""},
	}
	for _, tt := range tests {
		var r modern.AnyCallToolResult
		got := ""
		if err := modern.Decode([]byte(tt.in), &r); err != nil {
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
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.in, got, tt.want)
		}
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
