package jsonrpc

import "testing"

func TestCheckValue(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want scanFault
	}{
		{` {"a" : [ 1 , -0.5e+7, 0, 12.5E-1 ] , "b":{}, "c":[ ] } `, scanOK},
		{`"\"\\\/\b\f\n\r\t\u00aF"`, scanOK}, {`"é😀"`, scanOK}, {`"123456789012345\n"`, scanOK},
		{``, scanSyntax}, {`{`, scanSyntax}, {`{"a`, scanSyntax}, {`{"a"`, scanSyntax}, {`{"a":`, scanSyntax}, {`{"a":1`, scanSyntax},
		{`{"a":1,`, scanSyntax}, {`{"a":1]`, scanSyntax}, {`{a:1}`, scanSyntax}, {`{"a" 1}`, scanSyntax}, {`{"a":}`, scanSyntax},
		{`[`, scanSyntax}, {`[1`, scanSyntax}, {`[1,`, scanSyntax}, {`[1}`, scanSyntax}, {`[,]`, scanSyntax},
		{`"`, scanSyntax}, {`"\`, scanSyntax}, {`"\u12`, scanSyntax}, {`"\u12g4"`, scanSyntax}, {`"\q"`, scanSyntax}, {"\"\xf0\x9f\x98\"", scanSyntax},
		{`-`, scanSyntax}, {`+1`, scanSyntax}, {`01`, scanSyntax}, {`1.`, scanSyntax}, {`1e`, scanSyntax}, {`1e+`, scanSyntax}, {`.5`, scanSyntax},
		{`tru`, scanSyntax}, {`nul1`, scanSyntax}, {`falsy`, scanSyntax}, {`1 2`, scanSyntax},
		{`[[[[1]]]]`, scanOK}, {`[[[[[1]]]]]`, scanDepth}, {`{"a":{"a":{"a":{"a":{}}}}}`, scanDepth},
	} {
		if _, got := checkValue([]byte(tc.in), 4); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.in, got, tc.want)
		}
	}
}

func TestParseFaults(t *testing.T) {
	for _, in := range []string{`{"jsonrpc"`, `{"jsonrpc":`, `{"jsonrpc":"2.0"`, `{"jsonrpc":"2.0",`, `{"jsonrpc":"2.0"]`, `{"jsonrpc"}`, `{"a`, `{1`, `{}x`, `{"a":"\x"}`} {
		var m message
		m.parse([]byte(in), dialect{depth: 4})
		if m.kind != kindInvalid || m.fault.Code != CodeParseError {
			t.Errorf("%s: kind %v, fault %v", in, m.kind, m.fault)
		}
	}
	var m message
	m.parse([]byte(`{}`), dialect{})
	if m.fault.Code != CodeInvalidRequest {
		t.Errorf("depth 0: %v", m.fault)
	}
	for in, want := range map[string]string{`[{"jsonrpc":"2.0","id":1,"method":"a"}]`: "batches are not accepted", `"a"`: "a message is an object"} {
		m = message{}
		if m.parse([]byte(in), dialect{depth: 4}); m.kind != kindInvalid || m.fault.Message != want {
			t.Errorf("%s: kind %v, fault %v", in, m.kind, m.fault)
		}
	}
}
