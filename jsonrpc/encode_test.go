package jsonrpc

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/google/go-cmp/cmp"
)

// TestEncode compares the bytes of whole messages. None has a line feed, and all are JSON.
func TestEncode(t *testing.T) {
	x, _ := Pipe()
	p := NewPeer(x, nil, nil)
	one, err := mcptypes.ParseRequestID([]byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	raw := json.RawMessage("[1,\n2]")
	var none *json.RawMessage
	call := func(method string, params any) func() (string, error) {
		return func() (string, error) {
			b := getBuffer()
			err := p.writeCall(b, one, method, params)
			return b.String(), err
		}
	}
	result := func(v any) func() (string, error) {
		return func() (string, error) {
			b := getBuffer()
			err := p.writeResult(b, one, v)
			return b.String(), err
		}
	}
	fault := func(id ID, e *Error) func() (string, error) {
		return func() (string, error) {
			b := getBuffer()
			p.writeError(b, id, e)
			return b.String(), nil
		}
	}
	for name, tt := range map[string]struct {
		write func() (string, error)
		want  string // without the version; "" for an error
	}{
		"plain":            {call("a ~!#[]", nil), `"id":1,"method":"a ~!#[]"}`},
		"empty":            {call("", nil), `"id":1,"method":""}`},
		"quote":            {call(`a"`, nil), `"id":1,"method":"a\""}`},
		"backslash":        {call(`a\`, nil), `"id":1,"method":"a\\"}`},
		"control":          {call("a\x1f", nil), `"id":1,"method":"a\u001f"}`},
		"line feed":        {call("a\n", nil), `"id":1,"method":"a\n"}`},
		"not UTF-8":        {call("a\xff", nil), `"id":1,"method":"a` + "\ufffd" + `"}`},
		"beyond ASCII":     {call("é", nil), `"id":1,"method":"é"}`},
		"params":           {call("a", struct{}{}), `"id":1,"method":"a","params":{}}`},
		"list":             {call("a", []int{1}), `"id":1,"method":"a","params":[1]}`},
		"raw":              {call("a", json.RawMessage(" \t\r{} ")), `"id":1,"method":"a","params":{} }`},
		"raw, line feed":   {call("a", raw), `"id":1,"method":"a","params":[1,2]}`},
		"raw, feed first":  {call("a", json.RawMessage("\n[1]")), `"id":1,"method":"a","params":[1]}`},
		"raw by pointer":   {call("a", &raw), `"id":1,"method":"a","params":[1,2]}`},
		"null":             {call("a", json.RawMessage("null")), `"id":1,"method":"a"}`},
		"nil pointer":      {call("a", none), `"id":1,"method":"a"}`},
		"nil map":          {call("a", map[string]int(nil)), `"id":1,"method":"a","params":{}}`},
		"a string":         {call("a", "x"), ""},
		"a number":         {call("a", 1), ""},
		"raw, unclosed":    {call("a", json.RawMessage("{")), ""},
		"raw, two values":  {call("a", json.RawMessage("{},{}")), ""},
		"raw, closes more": {call("a", json.RawMessage("{}}")), ""},
		"result":           {result([]int{1}), `"id":1,"result":[1]}`},
		"result, nil":      {result(nil), `"id":1,"result":null}`},
		"result, raw":      {result(raw), `"id":1,"result":[1,2]}`},
		"result, no raw":   {result(json.RawMessage{}), `"id":1,"result":null}`},
		"result, nonsense": {result(json.RawMessage("x")), ""},
		"error":            {fault(one, &Error{Code: 5, Message: "no\n"}), `"id":1,"error":{"code":5,"message":"no\n"}}`},
		"error, data":      {fault(ID{}, &Error{Code: 5, Message: "no", Data: raw}), `"id":null,"error":{"code":5,"message":"no","data":[1,2]}}`},
		"error, digit":     {fault(one, &Error{Code: 5, Message: "no", Data: json.RawMessage("7")}), `"id":1,"error":{"code":5,"message":"no","data":7}}`},
		"error, nonsense":  {fault(one, &Error{Code: 5, Message: "no", Data: json.RawMessage("}")}), `"id":1,"error":{"code":5,"message":"no"}}`},
		"error, code only": {fault(one, &Error{Code: CodeParseError}), `"id":1,"error":{"code":-32700,"message":"parse error"}}`},
	} {
		got, err := tt.write()
		if tt.want == "" {
			if err == nil {
				t.Errorf("%s: written %s", name, got)
			}
			continue
		}
		if diff := cmp.Diff(`{"jsonrpc":"2.0",`+tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		if !json.Valid([]byte(got)) || strings.Contains(got, "\n") {
			t.Errorf("%s: %q is no line of JSON", name, got)
		}
	}
	deep := json.RawMessage(strings.Repeat("[", 10001) + strings.Repeat("]", 10001))
	if _, err := call("a", deep)(); !errors.Is(err, errRaw) {
		t.Errorf("raw params that are too deep: %v", err)
	}
}
