package mcptypes_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes"
	jsonv2 "github.com/go-json-experiment/json"
)

func TestParseRequestID(t *testing.T) {
	big := "1" + strings.Repeat("0", 400)
	tests := []struct{ in, want string }{ // want "" when refused
		{`1`, `1`}, {` 1 `, `1`}, {`"1"`, `"1"`}, {`""`, `""`}, {`0`, `0`}, {`-0`, `0`}, {`-0.0e5`, `0`},
		{`1.0`, `1`}, {`1e0`, `1`}, {`10e-1`, `1`}, {`1.20E+1`, `12`}, {`-7`, `-7`}, {`120.5e1`, `1205`},
		{`9007199254740993`, `9007199254740993`},
		{`9223372036854775807`, `9223372036854775807`},
		{`-9223372036854775808`, `-9223372036854775808`},
		{`9223372036854775808`, `9223372036854775808`},
		{`9223372036854775808.0`, `9223372036854775808`},
		{`1e400`, big}, {big + `.000`, big}, {`1e401`, `1e401`}, {`10e400`, `1e401`},
		{`1e999999999`, `1e999999999`}, {`-1e999999999`, `-1e999999999`},
		{`0e999999999999999999999999`, `0`},
		{`"\u0061"`, `"a"`}, {`"\ud83d\ude00"`, `"😀"`},
		{`1.5`, ``}, {`1e-1`, ``}, {`1e-999999999`, ``}, {`1e-99999999999999999999999`, ``},
		{`1e99999999999999999999999`, ``},
		{`null`, ``}, {`true`, ``}, {`[1]`, ``}, {`{}`, ``}, {``, ``}, {`01`, ``}, {`1.`, ``}, {`1e`, ``},
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
