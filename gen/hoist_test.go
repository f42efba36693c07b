package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHoistedReferences finds what each way to write a $ref names. It is a fragment of a URI, so
// characters of a name may be escaped in it.
func TestHoistedReferences(t *testing.T) {
	text := map[string]any{"type": "string"}
	for ref, want := range map[string]string{
		"#/definitions/A":              "#/$defs/A",
		"#/definitions/A B":            "#/$defs/A B",
		"#/definitions/A%20B":          "#/$defs/A B",
		"#/definitions/A~1C":           "#/$defs/A/C",
		"#/definitions/A%7E1C":         "#/$defs/A/C",
		"#/definitions/D/properties/e": "#/$defs/e",
		"#/definitions/missing":        "#/$defs/missing",
		"other.json":                   "other.json",
	} {
		h := hoist(map[string]any{"definitions": map[string]any{
			"A": text, "A B": text, "A/C": text,
			"D": map[string]any{"type": "object", "properties": map[string]any{"e": text}},
			"R": map[string]any{"$ref": ref},
		}})
		if diff := cmp.Diff(map[string]any{"$ref": want}, h.definitions["R"]); diff != "" {
			t.Errorf("%s (-want +got)\n%s", ref, diff)
		}
	}
}
