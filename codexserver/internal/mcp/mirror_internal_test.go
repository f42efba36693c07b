package mcp

import "testing"

// TestMirrored asks for a header exactly if the tool has the argument threadId.
func TestMirrored(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"threadId":{"type":"string"}}}`: `{"type":"object","properties":{"threadId":{"x-mcp-header":"Thread-Id","type":"string"}}}`,
		`{"properties":{"other":{"threadId":{"a":1}}}}`:                 `{"properties":{"other":{"threadId":{"a":1}}}}`,
		`{"threadId":{"a":1},"properties":{}}`:                          `{"threadId":{"a":1},"properties":{}}`,
		`{"properties":{"threadId":"x"}}`:                               `{"properties":{"threadId":"x"}}`,
	} {
		if got := string(mirrored([]byte(schema))); got != want {
			t.Errorf("%s: %s", schema, got)
		}
	}
}
