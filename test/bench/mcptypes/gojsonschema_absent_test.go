//go:build !gojsonschema

package bench_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var goJSONSchema map[string]func() any

// TestGoJSONSchema makes the types of go-jsonschema in a temporary folder and vets the code
// that is compiled with them.
func TestGoJSONSchema(t *testing.T) {
	dir := t.TempDir()
	types, err := filepath.Abs("gojsonschema/types.go")
	if err != nil {
		t.Fatal(err)
	}
	made, overlay := filepath.Join(dir, "types.go"), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{types: made}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"tool", "go-jsonschema", "-p", "gojsonschema", "--tags", "json", "-o", made, "../../../schema/2025-06-18/schema.json"},
		{"vet", "-tags", "gojsonschema", "-overlay", overlay, "."},
	} {
		if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", args[0], err, out)
		}
	}
}
