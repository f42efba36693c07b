package mcptypes_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/internal/schematest"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// decoders are the ways a caller may decode a T.
func decoders[T any]() map[string]func(string) (T, error) {
	type wrapped struct {
		V T `json:"v"`
	}
	return map[string]func(string) (T, error){
		"Decode":       func(s string) (v T, err error) { return v, mcptypes.Decode([]byte(s), &v) },
		"DecodeStrict": func(s string) (v T, err error) { return v, mcptypes.DecodeStrict([]byte(s), &v) },
		"v1":           func(s string) (v T, err error) { return v, json.Unmarshal([]byte(s), &v) },
		"v2":           func(s string) (v T, err error) { return v, jsonv2.Unmarshal([]byte(s), &v) },
		"v2 lax": func(s string) (v T, err error) {
			return v, jsonv2.Unmarshal([]byte(s), &v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsonv2.MatchCaseInsensitiveNames(true))
		},
		"v1 within": func(s string) (T, error) {
			var w wrapped
			err := json.Unmarshal([]byte(`{"v":`+s+`}`), &w)
			return w.V, err
		},
		"v2 reader": func(s string) (v T, err error) { return v, jsonv2.UnmarshalRead(strings.NewReader(s), &v) },
	}
}

// TestElicitResult checks answers to approvals: only a plain accept may be read as one.
func TestElicitResult(t *testing.T) {
	tests := []struct {
		in   string
		want mcptypes.ElicitResultAction // "" when refused
	}{
		{`{"action":"accept"}`, "accept"},
		{`{"action":"decline"}`, "decline"},
		{`{"action":"cancel","content":{}}`, "cancel"},
		{`{"action":"decline","Action":"accept"}`, "decline"},
		{`{"Action":"accept","action":"decline"}`, "decline"},
		{`{"acti\u006fn":"decline"}`, "decline"}, {`{"Action":"accept"}`, ""}, {`{"action":"accept","action":"decline"}`, ""},
		{`{"action":"decline","action":"accept"}`, ""},
		{`{"action":"decline","acti\u006fn":"accept"}`, ""},
		{`{"action":"decline","x":{"a":1,"a":2}}`, ""},
		{`{"action":"decline","_meta":{"a":1,"a":2}}`, ""},
		{`{"action":"accept","content":{"a":"1","a":"2"}}`, ""},
		{`{}`, ""}, {`{"action":"maybe"}`, ""}, {`{"action":"Accept"}`, ""}, {`{"action":"accept "}`, ""}, {`{"action":""}`, ""},
		{`{"action":null}`, ""}, {`{"action":true}`, ""}, {`{"action":["accept"]}`, ""}, {`{"action":"accept","content":[]}`, ""},
		{`{"action":"accept","content":{"a":{}}}`, ""},
		{`{"action":"accept","content":{"a":null}}`, ""},
		{`null`, ""}, {`[]`, ""}, {`"accept"`, ""}, {`1`, ""},
		{"{\"action\":\"accept\",\"x\":\"\xff\"}", ""},
		{"{\"action\":\"accept\",\"\xff\":1}", ""},
		{`{"action":"accept","x":"\ud800"}`, ""},
		{`{"action":"accept",}`, ""}, {`{"action":"accept"`, ""}, {`{"action":"accept"}}`, ""}, {``, ""},
		{`{"action":"accept"} {"action":"decline"}`, ""},
	}
	for name, decode := range decoders[mcptypes.ElicitResult]() {
		for _, tt := range tests {
			got, err := decode(tt.in)
			if tt.want == "" {
				if err == nil {
					t.Errorf("%s: %s was accepted as %q", name, tt.in, got.Action)
				}
			} else if err != nil || got.Action != tt.want {
				t.Errorf("%s: %s reads as %q, %v; want %q", name, tt.in, got.Action, err, tt.want)
			}
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	tests := []struct {
		in   string
		to   any
		want string
	}{
		{`{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":["object"]}}]}`,
			new(mcptypes.ListToolsResult), `mcptypes: /tools/1/inputSchema/type: want "object", found an array`},
		{`{"tools":[{"inputSchema":{"type":"object"}}]}`, new(mcptypes.ListToolsResult), `mcptypes: /tools/0/name: required, but absent`},
		{`{"tools":{}}`, new(mcptypes.ListToolsResult), `mcptypes: /tools: want an array, found an object`},
		{`[]`, new(mcptypes.ListToolsResult), `mcptypes: want an object, found an array`},
		{`{"name":"x","arguments":[]}`, new(mcptypes.CallToolRequestParams), `mcptypes: /arguments: want an object, found an array`},
		{`{"name":"x","arguments":{"a":1,"a":2}}`, new(mcptypes.CallToolRequestParams), `mcptypes: /arguments/a: duplicate member`},
		{`{"name":"x","name":"y"}`, new(mcptypes.CallToolRequestParams), `mcptypes: /name: duplicate member`},
		{`{"name":"x","_meta":{"progressToken":1.5}}`, new(mcptypes.CallToolRequestParams),
			`mcptypes: /_meta/progressToken: want a string or an integer, found a fraction`},
		{`{"content":[{"type":"text"}]}`, new(mcptypes.CallToolResult), `mcptypes: /content/0/text: required, but absent`},
		{`{"content":[{"text":"x"}]}`, new(mcptypes.CallToolResult), `mcptypes: /content/0/type: required, but absent`},
		{`{"content":[{"text":5,"type":"text"}]}`, new(mcptypes.CallToolResult), `mcptypes: /content/0/text: want a string, found a number`},
		{`{"content":[{"type":5}]}`, new(mcptypes.CallToolResult), `mcptypes: /content/0/type: want a string, found a number`},
		{`{"content":[{"type":"text","text":"x","type":"image"}]}`, new(mcptypes.CallToolResult), `mcptypes: /content/0/type: duplicate member`},
		{`{"content":[{"typ\u0065":"te\u0078t","text":5}]}`, new(mcptypes.CallToolResult), `mcptypes: /content/0/text: want a string, found a number`},
		{`{"content":[5]}`, new(mcptypes.CallToolResult), `mcptypes: /content/0: want an object, found a number`},
		{`{"contents":[{"uri":"x"}]}`, new(mcptypes.ReadResourceResult), `mcptypes: /contents/0/text: required, but absent`},
		{`{"contents":[{"uri":"x","blob":null}]}`, new(mcptypes.ReadResourceResult), `mcptypes: /contents/0/blob: want a string, found null`},
		{`{"priority":1.5}`, new(mcptypes.Annotations), `mcptypes: /priority: want a number from 0 to 1, found 1.5`},
		{`{"priority":1e999}`, new(mcptypes.Annotations), `mcptypes: /priority: want a number of 64 bits, found a larger one`},
		{`{"size":9223372036854775808,"name":"a","uri":"b"}`, new(mcptypes.Resource), `mcptypes: /size: want an integer of 64 bits, found a larger one`},
		{`{"size":1.5,"name":"a","uri":"b"}`, new(mcptypes.Resource), `mcptypes: /size: want an integer, found 1.5`},
		{`"grave"`, new(mcptypes.LoggingLevel), `mcptypes: want one of "alert", "critical", "debug", "emergency", "error", "info", "notice", "warning", found "grave"`},
		{`{"a/b~":{"c":1}`, new(mcptypes.Result), `mcptypes: unexpected EOF`},
		{`{"roots":[]} x`, new(mcptypes.ListRootsResult), `mcptypes: found 'x' after the value`},
		{`"x"`, new(int), `mcptypes: cannot decode into *int`},
		{`"x"`, mcptypes.Result{}, `mcptypes: cannot decode into mcptypes.Result, want a pointer that is not nil`},
		{`"x"`, nil, `mcptypes: cannot decode into <nil>, want a pointer that is not nil`},
		{`{}`, (*mcptypes.Result)(nil), `mcptypes: cannot decode into *mcptypes.Result, want a pointer that is not nil`},
	}
	for _, tt := range tests {
		if err := mcptypes.Decode([]byte(tt.in), tt.to); err == nil || err.Error() != tt.want {
			t.Errorf("%s\n got %v\nwant %s", tt.in, err, tt.want)
		}
	}
}

func TestDuplicateWrapsErrDuplicateName(t *testing.T) {
	err := mcptypes.Decode([]byte(`{"action":"accept","action":"accept"}`), new(mcptypes.ElicitResult))
	if !errors.Is(err, jsontext.ErrDuplicateName) {
		t.Errorf("%v does not wrap ErrDuplicateName", err)
	}
}

// TestDecodeReplaces checks that Decode replaces the whole earlier value.
func TestDecodeReplaces(t *testing.T) {
	got := mcptypes.CallToolResult{
		IsError: new(true), Content: mcptypes.Text("old"),
		StructuredContent: json.RawMessage(`{}`), Extra: map[string]json.RawMessage{"x": nil},
	}
	if err := mcptypes.Decode([]byte(`{"content":[]}`), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mcptypes.CallToolResult{Content: []mcptypes.ContentBlock{}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestArguments checks that absent, null, empty and other arguments stay different, and that
// numbers are not rounded.
func TestArguments(t *testing.T) {
	tests := []struct {
		in          string
		want        string // "" for absent
		err, strict bool
	}{
		{in: `{"name":"x"}`},
		{in: `{"name":"x","arguments":null}`, strict: true},
		{in: `{"name":"x","arguments":{}}`, want: `{}`},
		{in: `{"name":"x","arguments":{"n": 9007199254740993, "f": 1.10}}`, want: `{"n": 9007199254740993, "f": 1.10}`},
		{in: `{"name":"x","arguments":"{}"}`, err: true, strict: true},
		{in: `{"name":"x","arguments":[]}`, err: true, strict: true},
	}
	for _, tt := range tests {
		var p mcptypes.CallToolRequestParams
		err := mcptypes.Decode([]byte(tt.in), &p)
		if (err != nil) != tt.err || string(p.Arguments) != tt.want || (p.Arguments == nil) != (tt.want == "") {
			t.Errorf("%s: %q, %v", tt.in, p.Arguments, err)
		}
		if err := mcptypes.DecodeStrict([]byte(tt.in), new(mcptypes.CallToolRequestParams)); (err != nil) != tt.strict {
			t.Errorf("%s: strict: %v", tt.in, err)
		}
	}
}

func TestUnknownArm(t *testing.T) {
	const in = `{"content":[{"type":"video","uri":"v:1","n":1.0},{"type":"text","text":"and words"},{"late":1,"type":"smell"}]}`
	var got mcptypes.CallToolResult
	if err := mcptypes.Decode([]byte(in), &got); err != nil {
		t.Fatal(err)
	}
	want := mcptypes.CallToolResult{Content: []mcptypes.ContentBlock{
		&mcptypes.Unknown{Tag: "video", Raw: json.RawMessage(`{"type":"video","uri":"v:1","n":1.0}`)},
		&mcptypes.TextContent{Text: "and words"},
		&mcptypes.Unknown{Tag: "smell", Raw: json.RawMessage(`{"late":1,"type":"smell"}`)},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if out, err := mcptypes.Encode(&got); err != nil || string(out) != in {
		t.Errorf("encoded as %s, %v", out, err)
	}
	err := mcptypes.DecodeStrict([]byte(in), &got)
	if err == nil || err.Error() != `mcptypes: /content/0/type: "video" is not known` {
		t.Errorf("strict: %v", err)
	}
}

// TestFormFraction checks the rule form-fraction of deviations.json.
func TestFormFraction(t *testing.T) {
	const in = `{"action":"accept","content":{"n":1.50}}`
	var answer mcptypes.ElicitResult
	if err := mcptypes.Decode([]byte(in), &answer); err != nil || answer.Content["n"].String() != "1.50" {
		t.Errorf("%v, %v", answer.Content, err)
	}
	err := mcptypes.DecodeStrict([]byte(in), &answer)
	if err == nil || err.Error() != "mcptypes: /content/n: want a string, an integer or a boolean, found 1.50" {
		t.Errorf("strict: %v", err)
	}
}

// TestPresence decodes unions without a tag.
func TestPresence(t *testing.T) {
	tests := []struct {
		in   string
		to   any
		want any
	}{
		{`{"type":"string","enum":["a"]}`, new(mcptypes.PrimitiveSchemaDefinition), &mcptypes.EnumSchema{Enum: []string{"a"}}},
		{`{"enum":["a"],"type":"string"}`, new(mcptypes.PrimitiveSchemaDefinition), &mcptypes.EnumSchema{Enum: []string{"a"}}},
		{`{"type":"string","maxLength":3}`, new(mcptypes.PrimitiveSchemaDefinition), &mcptypes.StringSchema{MaxLength: new(int64(3))}},
		{`{"type":"integer"}`, new(mcptypes.PrimitiveSchemaDefinition), &mcptypes.NumberSchema{Type: "integer"}},
		{`{"type":"array","items":{}}`, new(mcptypes.PrimitiveSchemaDefinition),
			&mcptypes.Unknown{Tag: "array", Raw: json.RawMessage(`{"type":"array","items":{}}`)}},
		{`{"uri":"u","text":"t","blob":"Yg=="}`, new(mcptypes.TextOrBlobResourceContents),
			&mcptypes.TextResourceContents{URI: "u", Text: "t", Extra: map[string]json.RawMessage{"blob": json.RawMessage(`"Yg=="`)}}},
	}
	for _, tt := range tests {
		if err := mcptypes.Decode([]byte(tt.in), tt.to); err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		if diff := cmp.Diff(tt.want, schematest.Value(tt.to), cmp.Comparer(func(a, b mcptypes.RequestID) bool { return a == b })); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.in, diff)
		}
	}
}
