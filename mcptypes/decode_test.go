package mcptypes_test

import (
	"encoding/json"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"math"
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
		{`{"action":"accept"}`, "accept"}, {`{"action":"decline"}`, "decline"}, {`{"action":"cancel","content":{}}`, "cancel"},
		{`{"action":"decline","Action":"accept"}`, "decline"}, {`{"Action":"accept","action":"decline"}`, "decline"},
		{`{"acti\u006fn":"decline"}`, "decline"}, {`{"Action":"accept"}`, ""}, {`{"action":"accept","action":"decline"}`, ""},
		{`{"action":"decline","action":"accept"}`, ""}, {`{"action":"decline","acti\u006fn":"accept"}`, ""},
		{`{"action":"decline","x":{"a":1,"a":2}}`, ""}, {`{"action":"decline","_meta":{"a":1,"a":2}}`, ""},
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
		{`"grave"`, new(mcptypes.LoggingLevel), `mcptypes: want one of "alert", "critical", "debug", "emergency", "error", "info", "notice", "warning", found "grave"`},
		{`{"a/b~":{"c":1}`, new(mcptypes.Result), `mcptypes: unexpected EOF`},
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

// TestDecodeReplaces checks that Decode replaces the whole earlier value.
func TestDecodeReplaces(t *testing.T) {
	got := mcptypes.CallToolResult{
		IsError: new(true), Content: mcptypes.Text("old"),
		StructuredContent: json.RawMessage(`{}`), Extra: map[string]json.RawMessage{"x": nil},
	}
	must.OK(t, mcptypes.Decode([]byte(`{"content":[]}`), &got))
	if diff := cmp.Diff(mcptypes.CallToolResult{Content: []mcptypes.ContentBlock{}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestArguments checks that absent, null, empty and other arguments stay different, and that numbers are not rounded.
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
	must.OK(t, mcptypes.Decode([]byte(in), &got))
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

// TestPresence decodes unions without a tag.
func TestPresence(t *testing.T) {
	tests := []struct {
		in       string
		to, want any
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

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestEncode(t *testing.T) {
	tests := []struct {
		v    any
		want string
	}{
		{mcptypes.CallToolResult{}, `{"content":[]}`},
		{&mcptypes.CallToolResult{Content: mcptypes.Text("a", "b"), IsError: new(false)},
			`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"isError":false}`},
		{mcptypes.ClientCapabilities{Elicitation: map[string]json.RawMessage{}}, `{"elicitation":{}}`},
		{mcptypes.ClientCapabilities{}, `{}`},
		{mcptypes.EmptyResult{}, `{}`},
		{mcptypes.Result{Extra: map[string]json.RawMessage{"b": raw("2"), "a": raw(" [1, 2.50] "), "": raw(`"\u0041"`)}},
			`{"":"\u0041","a":[1, 2.50],"b":2}`},
		{mcptypes.CallToolRequestParams{Name: "x", Arguments: raw("{\n  \"n\": 9007199254740993\n}"),
			Meta: &mcptypes.RequestMeta{ProgressToken: new(mcptypes.IntToken(1<<53 + 1))}},
			`{"_meta":{"progressToken":9007199254740993},"arguments":{"n":9007199254740993},"name":"x"}`},
		{mcptypes.ElicitRequestParams{Message: "Run\n\"go test\"?\x01\u2028"},
			`{"message":"Run\n\"go test\"?\u0001` + "\u2028" + `","requestedSchema":{"type":"object","properties":{}}}`},
		{mcptypes.ElicitResult{Action: mcptypes.ElicitResultActionAccept, Content: map[string]mcptypes.ElicitValue{
			"b": mcptypes.ElicitBool(true), "a": mcptypes.ElicitString("x"), "c": mcptypes.ElicitInt(-7)}},
			`{"action":"accept","content":{"a":"x","b":true,"c":-7}}`},
		{mcptypes.ImageContent{Data: mcptypes.Base64Of([]byte{0xff, 0xfe}), MimeType: "image/png"},
			`{"type":"image","data":"//4=","mimeType":"image/png"}`},
		{mcptypes.Cursor("x"), `"x"`}, {mcptypes.RoleUser, `"user"`}, {mcptypes.IntID(3), `3`},
	}
	for _, tt := range tests {
		got, err := mcptypes.Encode(tt.v)
		if err != nil || string(got) != tt.want {
			t.Errorf("Encode(%T)\n got %s, %v\nwant %s", tt.v, got, err, tt.want)
		}
		v1, err1 := json.Marshal(tt.v)
		v2, err2 := jsonv2.Marshal(tt.v)
		if err1 != nil || err2 != nil || schematest.DiffJSON(t, tt.want, string(v1))+schematest.DiffJSON(t, tt.want, string(v2)) != "" {
			t.Errorf("%T: encoding/json: %s, %v; json/v2: %s, %v", tt.v, v1, err1, v2, err2)
		}
	}
}

func TestEncodeErrors(t *testing.T) {
	tool := func(schema string) any {
		return mcptypes.ListToolsResult{Tools: []mcptypes.Tool{{Name: "a", InputSchema: raw(schema)}}}
	}
	tests := []struct {
		v    any
		want string
	}{
		{mcptypes.CancelledNotificationParams{}, `/requestId: required, but absent`},
		{mcptypes.EmbeddedResource{}, `/resource: required, but absent`},
		{mcptypes.CallToolResult{Content: []mcptypes.ContentBlock{&mcptypes.TextContent{}, nil}}, `/content/1: required, but absent`},
		{mcptypes.CallToolResult{Content: []mcptypes.ContentBlock{(*mcptypes.TextContent)(nil)}}, `/content/0: required, but absent`},
		{mcptypes.CallToolResult{Content: []mcptypes.ContentBlock{(*mcptypes.Unknown)(nil)}}, `/content/0: required, but absent`},
		{mcptypes.CallToolResult{Content: []mcptypes.ContentBlock{&mcptypes.Unknown{Raw: raw("5")}}}, `/content/0: want a JSON object`},
		{mcptypes.CallToolResult{StructuredContent: raw(`[]`)}, `/structuredContent: want a JSON object`},
		{mcptypes.ElicitResult{}, `/action: want one of "accept", "cancel", "decline", have ""`},
		{mcptypes.ElicitResult{Action: "accept", Content: map[string]mcptypes.ElicitValue{"a/b": {}}}, `/content/a~1b: required, but absent`},
		{mcptypes.Result{Extra: map[string]json.RawMessage{"_meta": raw(`{}`)}}, `a known member is among the unknown ones: "_meta"`},
		{mcptypes.TextContent{Extra: map[string]json.RawMessage{"type": raw(`"image"`)}}, `a known member is among the unknown ones: "type"`},
		{mcptypes.TextContent{Text: "\xff"}, `/text: string is not UTF-8`},
		{mcptypes.Annotations{Priority: new(1.5)}, `/priority: want a number from 0 to 1, have 1.5`},
		{mcptypes.Annotations{Priority: new(math.NaN())}, `/priority: want a number from 0 to 1, have NaN`},
		{mcptypes.ProgressNotificationParams{ProgressToken: mcptypes.IntToken(1), Progress: math.Inf(1)}, `/progress: number has no JSON form`},
		{tool(``), `/tools/0/inputSchema: `},
		{tool(`{"type":"array"}`), `/tools/0/inputSchema/type: want "object", found "array"`},
		{tool(`{}`), `/tools/0/inputSchema/type: required, but absent`},
		{tool(`{"type":"object","type":"object"}`), `/tools/0/inputSchema/type: duplicate member`},
		{tool(`{"type":"object"`), `/tools/0/inputSchema: `},
		{5, `cannot encode int`}, {nil, `cannot encode <nil>`},
	}
	for _, tt := range tests {
		if got, err := mcptypes.Encode(tt.v); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Encode(%T) = %s, %v; want %s", tt.v, got, err, tt.want)
		}
		if tt.v == nil || tt.v == 5 {
			continue
		}
		if got, err := json.Marshal(tt.v); err == nil {
			t.Errorf("encoding/json wrote %T as %s", tt.v, got)
		}
		if got, err := jsonv2.Marshal(tt.v); err == nil {
			t.Errorf("json/v2 wrote %T as %s", tt.v, got)
		}
	}
}

func TestElicitValue(t *testing.T) {
	tests := []struct{ in, str, number, boolean string }{
		{`"x"`, "x", "-", "-"}, {`""`, "", "-", "-"}, {`true`, "-", "-", "true"}, {`false`, "-", "-", "false"},
		{`1.50`, "-", "1.50", "-"}, {`9007199254740993`, "-", "9007199254740993", "-"},
	}
	for _, tt := range tests {
		var v mcptypes.ElicitValue
		if err := json.Unmarshal([]byte(tt.in), &v); err != nil {
			t.Errorf("%s: %v", tt.in, err)
		}
		str, number, boolean := "-", "-", "-"
		if s, ok := v.Str(); ok {
			str = s
		}
		if n, ok := v.Number(); ok {
			number = n.String()
		}
		if b, ok := v.Bool(); ok {
			boolean = map[bool]string{true: "true", false: "false"}[b]
		}
		if str != tt.str || number != tt.number || boolean != tt.boolean || v.String() != tt.in || v.IsZero() {
			t.Errorf("%s: string %s, number %s, boolean %s, prints %s", tt.in, str, number, boolean, v)
		}
	}
	if mcptypes.ElicitInt(1) == mcptypes.ElicitString("1") || !(mcptypes.ElicitValue{}).IsZero() || (mcptypes.ElicitValue{}).String() != "" {
		t.Error("values that differ are the same")
	}
}

func TestBase64(t *testing.T) {
	data := []byte("any bytes \x00\xff")
	if got, err := mcptypes.Base64Of(data).Bytes(); err != nil || string(got) != string(data) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := mcptypes.Base64("?").Bytes(); err == nil {
		t.Error("no error for text that is not base64")
	}
}

// TestElicitStrings checks lists of strings, which only newer versions have.
func TestElicitStrings(t *testing.T) {
	v, err := mcptypes.ParseElicitValue([]byte("[ \"a\",\n \"b\\u0022\" ]"))
	if err != nil || v != mcptypes.ElicitStrings("a", `b"`) || v.String() != `["a","b\""]` {
		t.Errorf("got %v, %v", v, err)
	}
	if list, ok := v.Strings(); !ok || len(list) != 2 || list[1] != `b"` {
		t.Errorf("got %q, %v", list, ok)
	}
	for _, v := range []mcptypes.ElicitValue{{}, mcptypes.ElicitString("a"), mcptypes.ElicitString(`["a"]`)} {
		if list, ok := v.Strings(); ok {
			t.Errorf("%v is the list %q", v, list)
		}
	}
	if _, err := mcptypes.Encode(v); err == nil {
		t.Error("this version writes a list")
	}
	if err := mcptypes.Decode([]byte(`["a"]`), &v); err == nil {
		t.Error("this version reads a list")
	}
	for _, text := range []string{`["a",1]`, `[null]`, `{}`, `null`, ``, `"a" "b"`, `["a"`} {
		if v, err := mcptypes.ParseElicitValue([]byte(text)); err == nil {
			t.Errorf("%s is %v", text, v)
		}
	}
	for _, text := range []string{`"a"`, `1.5`, `true`, `[]`} {
		if v, err := mcptypes.ParseElicitValue([]byte(text)); err != nil || v.String() != text {
			t.Errorf("%s is %v, %v", text, v, err)
		}
	}
}

func TestParseRequestID(t *testing.T) {
	big := "1" + strings.Repeat("0", 400)
	tests := []struct{ in, want string }{ // want "" when refused
		{`1`, `1`}, {` 1 `, `1`}, {`"1"`, `"1"`}, {`""`, `""`}, {`0`, `0`}, {`-0`, `0`}, {`-0.0e5`, `0`},
		{`1.0`, `1`}, {`1e0`, `1`}, {`10e-1`, `1`}, {`1.20E+1`, `12`}, {`-7`, `-7`}, {`120.5e1`, `1205`},
		{`999999999999999999`, `999999999999999999`}, {`1000000000000000000`, `1000000000000000000`},
		{`9007199254740993`, `9007199254740993`}, {`9223372036854775807`, `9223372036854775807`},
		{`-9223372036854775808`, `-9223372036854775808`}, {`9223372036854775808`, `9223372036854775808`},
		{`9223372036854775808.0`, `9223372036854775808`},
		{`1e400`, big}, {big + `.000`, big}, {`1e401`, `1e401`}, {`10e400`, `1e401`},
		{`1e999999999`, `1e999999999`}, {`-1e999999999`, `-1e999999999`},
		{`0e999999999999999999999999`, `0`},
		{`"\u0061"`, `"a"`}, {`"\ud83d\ude00"`, `"😀"`},
		{`1.5`, ``}, {`1e-1`, ``}, {`1e-999999999`, ``}, {`1e-99999999999999999999999`, ``},
		{`1e99999999999999999999999`, ``},
		{`null`, ``}, {`true`, ``}, {`[1]`, ``}, {`{}`, ``}, {``, ``}, {`01`, ``}, {`00`, ``}, {`1a`, ``}, {`1.`, ``}, {`1e`, ``},
		{`+1`, ``}, {`-`, ``}, {`.5`, ``}, {`1 2`, ``}, {`"a`, ``}, {`"a" "b"`, ``}, {`"\ud800"`, ``}, {"\"\xff\"", ``},
		{`NaN`, ``}, {`0x10`, ``},
	}
	for _, tt := range tests {
		id, err := mcptypes.ParseRequestID([]byte(tt.in))
		if (err == nil) != (tt.want != "") || id.String() != tt.want {
			t.Errorf("ParseRequestId(%.40s) = %.60s, %v; want %.60s", tt.in, id, err, tt.want)
		}
		token, err := mcptypes.ParseProgressToken([]byte(tt.in))
		if (err == nil) != (tt.want != "") || token.String() != tt.want {
			t.Errorf("ParseProgressToken(%.40s) = %.60s, %v; want %.60s", tt.in, token, err, tt.want)
		}
		var v1, v2 mcptypes.RequestID
		err1, err2 := json.Unmarshal([]byte(tt.in), &v1), jsonv2.Unmarshal([]byte(tt.in), &v2)
		if (err1 == nil) != (err == nil) || (err2 == nil) != (err == nil) || err == nil && (v1 != id || v2 != id) {
			t.Errorf("%.40s: encoding/json %v %v, json/v2 %v %v", tt.in, v1, err1, v2, err2)
		}
	}
}

// TestIsZero checks that only an id without a value is absent, and cannot be written.
func TestIsZero(t *testing.T) {
	if (mcptypes.IntID(0)).IsZero() || mcptypes.StringID("").IsZero() || mcptypes.IntToken(0).IsZero() || mcptypes.StringToken("").IsZero() ||
		!(mcptypes.RequestID{}).IsZero() || !(mcptypes.ProgressToken{}).IsZero() {
		t.Error("wrong ids are absent")
	}
	if id := (mcptypes.RequestID{}); id.String() != "" || string(id.AppendJSON(nil)) != "null" {
		t.Errorf("the absent id is %q, %s", id, id.AppendJSON(nil))
	}
	for _, v := range []any{mcptypes.RequestID{}, mcptypes.ProgressToken{}, mcptypes.ElicitValue{}} {
		b, err := json.Marshal(v)
		b2, err2 := jsonv2.Marshal(v)
		if err == nil || err2 == nil {
			t.Errorf("%T: %s, %s", v, b, b2)
		}
	}
}

func TestRequestIDIsKey(t *testing.T) {
	m := map[mcptypes.RequestID]string{
		mcptypes.IntID(1): "int", mcptypes.StringID("1"): "string",
		mcptypes.IntID(1<<53 + 1): "odd", mcptypes.IntID(1 << 53): "even",
	}
	for raw, want := range map[string]string{
		`1`: "int", `1.0`: "int", `"1"`: "string", `9007199254740993`: "odd", `9007199254740992`: "even", `"x"`: "",
	} {
		id, err := mcptypes.ParseRequestID([]byte(raw))
		if err != nil || m[id] != want {
			t.Errorf("m[%s] = %q, %v; want %q", raw, m[id], err, want)
		}
	}
}
