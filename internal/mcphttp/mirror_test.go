package mcphttp_test

import (
	"encoding/json"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// toolServer is a server of 2026-07-28 with these tools.
type toolServer struct {
	tools string
	pages map[string]string // other tools, by the cursor
	calls chan http.Header  // of tools/call
}

func (s *toolServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Cursor string `json:"cursor"`
		} `json:"params"`
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &m)
	result := `{"resultType":"complete"}`
	switch m.Method {
	case "tools/list":
		tools := s.tools
		if m.Params.Cursor != "" {
			tools = s.pages[m.Params.Cursor]
		}
		result = `{"resultType":"complete","big":12345678901234567890,"tools":[` + tools + `]}`
	case "tools/call":
		s.calls <- r.Header
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// connectTools returns a client of the server behind the transport.
func connectTools(t *testing.T, s *toolServer) *jsonrpc.Peer {
	t.Helper()
	s.calls = make(chan http.Header, 1)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return connect(t, server.URL, nil)
}

const todaysMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func listTools(t *testing.T, p *jsonrpc.Peer, params string) (result string, names []string) {
	t.Helper()
	var raw json.RawMessage
	must.OK(t, p.Call(t.Context(), "tools/list", json.RawMessage(params), &raw))
	var list struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return string(raw), names
}

// mirrored returns the headers of a call that mirror its arguments.
func (s *toolServer) mirrored(t *testing.T, p *jsonrpc.Peer, tool, arguments string) map[string]string {
	t.Helper()
	if err := p.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"`+tool+`","arguments":`+arguments+`,`+todaysMeta+`}`), nil); err != nil {
		t.Fatalf("%s: %v", arguments, err)
	}
	h := wait(t, s.calls)
	if got := h.Values("Authorization"); len(got) != 1 || got[0] != "Bearer ann" {
		t.Errorf("%s: Authorization is %q", arguments, got)
	}
	if h["Mcp-Session-Id"] != nil || h["X-Injected"] != nil {
		t.Errorf("%s: %v", arguments, h)
	}
	found := map[string]string{}
	for name, values := range h {
		if name, ok := strings.CutPrefix(name, "Mcp-Param-"); ok {
			found[name] = strings.Join(values, " and ")
		}
	}
	return found
}

// TestClientMirrorsArguments checks the headers that a server's tools ask for.
func TestClientMirrorsArguments(t *testing.T) {
	s := &toolServer{tools: `{"name":"t","inputSchema":{"type":"object","properties":{
		"s":{"x-mcp-header":"Text","type":"string"},"i":{"type":"integer","x-mcp-header":"number"},"b":{"type":"boolean","x-mcp-header":"Flag"},
		"token":{"type":"string","x-mcp-header":"Authorization"},"host":{"type":"string","x-mcp-header":"Host"},
		"session":{"type":"string","x-mcp-header":"Mcp-Session-Id"},"x-mcp-header":{"type":"string"},"threadId":{"type":"string"},
		"in":{"type":"object","properties":{"per":{"type":"object","properties":{"s":{"type":"string","x-mcp-header":"A!#$%&'*+-.^_` + "`" + `|~9"}}}}}}}},
		{"name":"other","inputSchema":{"type":"object","properties":{"s":{"type":"string"}}}},{"name":"plain","inputSchema":{"type":"object","properties":{"threadId":{"type":"string"}}}}`}
	p := connectTools(t, s)
	got := s.mirrored(t, p, "t", `{"s":"x","threadId":"1"}`)
	must.Equal(t, "before tools/list", map[string]string{"Thread-Id": "1"}, got)
	listTools(t, p, `{`+todaysMeta+`}`)
	for _, tt := range []struct {
		arguments string
		want      map[string]string
	}{
		{`{}`, map[string]string{}},
		{`{"s":null,"i":{},"b":[true],"other":"x","threadId":"1","x-mcp-header":"x"}`, map[string]string{}},
		{`{"s":"us west 1","i":42,"b":true}`, map[string]string{"Text": "us west 1", "Number": "42", "Flag": "true"}},
		{`{"s":"","i":-7.0,"b":false}`, map[string]string{"Text": "=?base64??=", "Number": "-7", "Flag": "false"}},
		{`{"s":" padded ","i":1e2}`, map[string]string{"Text": "=?base64?IHBhZGRlZCA=?=", "Number": "100"}},
		{`{"s":"Hello, 世界","i":-0}`, map[string]string{"Text": "=?base64?SGVsbG8sIOS4lueVjA==?=", "Number": "0"}},
		{`{"s":"=?base64?literal?=","i":9007199254740993}`, map[string]string{"Text": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "Number": "9007199254740993"}},
		{`{"s":"a\r\nX-Injected: b","i":1.5}`, map[string]string{"Text": "=?base64?YQ0KWC1JbmplY3RlZDogYg==?=", "Number": "1.5"}},
		{`{"s":"\u007f\t","i":1e999}`, map[string]string{"Text": "=?base64?fwk=?=", "Number": "1e999"}},
		{`{"token":"a","host":"b","session":"c"}`, map[string]string{"Authorization": "a", "Host": "b", "Mcp-Session-Id": "c"}},
		{`{"in":{"per":{"s":"deep"},"s":"x"}}`, map[string]string{"A!#$%&'*+-.^_`|~9": "deep"}},
		{`{"in":{"per":"s"}}`, map[string]string{}},
	} {
		must.Equal(t, tt.arguments, tt.want, s.mirrored(t, p, "t", tt.arguments))
	}
	for tool, want := range map[string]map[string]string{"plain": {}, "other": {"Thread-Id": "1"}, "unlisted": {"Thread-Id": "1"}} {
		must.Equal(t, tool, want, s.mirrored(t, p, tool, `{"threadId":"1"}`))
	}
}

// TestClientLeavesToolsOut checks that a client of 2026-07-28 does not see tools that ask for
// headers in a way that is not allowed.
func TestClientLeavesToolsOut(t *testing.T) {
	for _, schema := range []string{
		`{"x-mcp-header":"A","type":"string"}`, `{"properties":{"a":{"type":"string","x-mcp-header":""}}}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":null}}}`, `{"properties":{"a":{"type":"string","x-mcp-header":["A"]}}}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":"A B"}}}`, `{"properties":{"a":{"type":"string","x-mcp-header":"A:B"}}}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":"A\r\nX-Injected: b"}}}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":"A\u0000"}}}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":"Région"}}}`,
		`{"properties":{"a":{"x-mcp-header":"A"}}}`,
		`{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`,
		`{"properties":{"a":{"type":"null","x-mcp-header":"A"}}}`,
		`{"properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}`,
		`{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`,
		`{"properties":{"a":{"type":"array","items":{"type":"string"},"x-mcp-header":"A"}}}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`,
		`{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`,
		`{"properties":{"a":{"type":"array","items":{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}}}}`,
		`{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`,
		`{"then":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`,
		`{"$defs":{"a":{"type":"string","x-mcp-header":"A"}},"properties":{"a":{"$ref":"#/$defs/a"}}}`,
		`{"additionalProperties":{"type":"string","x-mcp-header":"A"}}`,
	} {
		good := `{"name":"good","inputSchema":{"type":"object","$defs":{"x-mcp-header":{"type":"null"}},"properties":{"x-mcp-header":{"type":"object","default":{"x-mcp-header":1}}},"required":["a"]}}`
		s := &toolServer{tools: `{"name":"bad","inputSchema":` + schema + `},` + good}
		p := connectTools(t, s)
		result, names := listTools(t, p, `{`+todaysMeta+`}`)
		must.Equal(t, schema, []string{"good"}, names)
		if !strings.Contains(result, good) || !strings.Contains(result, `"big":12345678901234567890`) {
			t.Errorf("%s: the rest has changed: %s", schema, result)
		}
		if got := s.mirrored(t, p, "bad", `{"a":"x"}`); len(got) > 0 {
			t.Errorf("%s: a tool that was left out is called with %v", schema, got)
		}
	}
}

// TestClientForgetsTools checks that a server with very long tools cannot fill the memory, and
// that the transport learns of others after that.
func TestClientForgetsTools(t *testing.T) {
	const many = 40
	var tools []string
	for i := range many { // together they are too long to be remembered
		tools = append(tools, fmt.Sprintf(`{"name":"t%d","description":%q,"inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`, i, strings.Repeat("x", 30_000)))
	}
	s := &toolServer{tools: strings.Join(tools, ",")}
	p := connectTools(t, s)
	if _, names := listTools(t, p, `{`+todaysMeta+`}`); len(names) != many {
		t.Errorf("%d tools", len(names))
	}
	if got := s.mirrored(t, p, "t0", `{"a":"x"}`); len(got) > 0 {
		t.Errorf("the first tool is remembered: %v", got)
	}
	if diff := cmp.Diff(map[string]string{"A": "x"}, s.mirrored(t, p, fmt.Sprint("t", many-1), `{"a":"x"}`)); diff != "" {
		t.Error(diff)
	}
}

// TestClientLearnsAgain checks tools that a server lists several times.
func TestClientLearnsAgain(t *testing.T) {
	annotated := func(name, header, more string) string {
		return `{"name":"` + name + `","description":"` + more + `","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"` + header + `"}}}}`
	}
	s := &toolServer{tools: annotated("t", "A", ""), pages: map[string]string{
		"long":   annotated("long", "A", strings.Repeat("x", 300_000)),
		"change": annotated("t", "B", ""),
		"fault":  annotated("t", "", ""),
	}}
	p := connectTools(t, s)
	for _, tt := range []struct {
		cursor string
		want   map[string]string
	}{
		{"", map[string]string{"A": "x"}}, {"long", map[string]string{"A": "x"}}, {"long", map[string]string{"A": "x"}},
		{"long", map[string]string{"A": "x"}}, {"long", map[string]string{"A": "x"}}, {"change", map[string]string{"B": "x"}},
		{"fault", map[string]string{}},
	} {
		listTools(t, p, `{"cursor":"`+tt.cursor+`",`+todaysMeta+`}`)
		must.Equal(t, fmt.Sprintf("%q", tt.cursor), tt.want, s.mirrored(t, p, "t", `{"a":"x"}`))
	}
}
