package mcptypes_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/internal/schematest"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

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

// TestUnknownMembers decodes and encodes an elicitation with members that are not in the
// schema, with both JSON packages.
func TestUnknownMembers(t *testing.T) {
	const in = `{"message":"Run it?","requestedSchema":{"type":"object","properties":{}},"codex_call_id":"call_1","codex_cwd":{"n":1.0}}`
	var p mcptypes.ElicitRequestParams
	if err := json.Unmarshal([]byte(in), &p); err != nil {
		t.Fatal(err)
	}
	want := map[string]json.RawMessage{"codex_call_id": raw(`"call_1"`), "codex_cwd": raw(`{"n":1.0}`)}
	if diff := cmp.Diff(want, p.Extra); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	v1, err1 := json.Marshal(p)
	v2, err2 := jsonv2.Marshal(&p)
	if err1 != nil || err2 != nil || string(v1) != in || string(v2) != in {
		t.Errorf("encoding/json: %s, %v; json/v2: %s, %v", v1, err1, v2, err2)
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
