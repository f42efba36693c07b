package appserver

import (
	stdjson "encoding/json"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// TestKeys merges configurations as Codex does, takes keys out of one, and writes the result for Codex.
func TestKeys(t *testing.T) {
	for name, tt := range map[string]struct{ k, over, with, without string }{
		"nothing":             {`{}`, `{}`, `{}`, `{}`},
		"tables":              {`{"t":{"a":1,"b":{"c":2}}}`, `{"t":{"b":{"d":3}}}`, `{"t.a":1,"t.b.c":2,"t.b.d":3}`, `{"t.a":1,"t.b.c":2}`},
		"dotted":              {`{"t.a":1,"t":{"b":2}}`, `{"t.a":3}`, `{"t.a":3,"t.b":2}`, `{"t.b":2}`},
		"a value for a table": {`{"t":{"a":1},"x":1}`, `{"t":2,"x":{"y":1}}`, `{"t":2,"x.y":1}`, `{}`},
		"null":                {`{"t":{"a":1},"x":1}`, `{"t":null,"x":null}`, `{"t.a":1,"x":null}`, `{}`},
		"names with dots":     {`{"t":{"a.b":{"c":1},"d":{"e":2}}}`, `{"t":{"d":{"on":false}}}`, `{"t":{"a.b":{"c":1},"d":{"e":2,"on":false}}}`, `{"t":{"a.b":{"c":1},"d":{"e":2}}}`},
		"empty":               {`{"t":{}}`, `{"t":{"a":{}}}`, `{"t.a":{}}`, `{}`},
	} {
		read := func(text string) keys {
			var dotted map[string]stdjson.RawMessage
			if err := stdjson.Unmarshal([]byte(text), &dotted); err != nil {
				t.Fatal(err)
			}
			k, err := parse(dotted)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
		k, over := read(tt.k), read(tt.over)
		for want, got := range map[string]keys{tt.with: k.with(over), tt.without: k.without(over), dottedText(t, k): read(tt.k)} {
			if diff := cmp.Diff(want, dottedText(t, got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
	if _, err := parse(map[string]stdjson.RawMessage{"k": stdjson.RawMessage(`{"a":1,"a":2}`)}); err == nil {
		t.Error("a name twice is no error")
	}
}

func dottedText(t *testing.T, k keys) string {
	t.Helper()
	text, err := json.Marshal(k.dotted(), json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
