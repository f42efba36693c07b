package model

import "testing"

// TestPlainSchema has schemas of MCP servers that some provider refuses, and what each takes.
func TestPlainSchema(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"l":{"type":"array"}}}`:                             `{"properties":{"l":{"items":{"type":"string"},"type":"array"}},"type":"object"}`,
		`{"type":"object","properties":{"l":{"type":"array","items":{"type":"array"}}}}`:    `{"properties":{"l":{"items":{"items":{"type":"string"},"type":"array"},"type":"array"}},"type":"object"}`,
		`{"type":"object","properties":{"l":{"type":"array","items":[{"type":"number"}]}}}`: `{"properties":{"l":{"items":{"type":"string"},"type":"array"}},"type":"object"}`,
		`{"type":"string"}`: `{"properties":{},"type":"object"}`,
		`{"type":"object"}`: `{"properties":{},"type":"object"}`,
		`true`:              `{"properties":{},"type":"object"}`,
		``:                  `{"properties":{},"type":"object"}`,
		`{"type":"object","anyOf":[{"required":["a"]}],"properties":{"a":{"type":"integer","minimum":1,"description":"d"}},"$schema":"x","additionalProperties":false,"required":["a","b"]}`:                      `{"properties":{"a":{"description":"d","type":"integer"}},"required":["a"],"type":"object"}`,
		`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"type":"null"},{"type":"boolean"}]},"c":{},"d":true,"e":{"enum":["x","y"]},"f":{"enum":[1,"y"]},"g":{"$ref":"#/$defs/g"}}}`: `{"properties":{"a":{"type":"string"},"b":{"type":"boolean"},"c":{"type":"string"},"d":{"type":"string"},"e":{"enum":["x","y"],"type":"string"},"f":{"type":"string"},"g":{"type":"string"}},"type":"object"}`,
		`{"type":"object","properties":{"o":{"properties":{"x":{"type":"number"}},"required":["x"]}}}`:                                                                                                            `{"properties":{"o":{"properties":{"x":{"type":"number"}},"required":["x"],"type":"object"}},"type":"object"}`,
	} {
		if got := string(plainSchema([]byte(schema))); got != want {
			t.Errorf("%s:\n got %s\nwant %s", schema, got, want)
		}
	}
}
