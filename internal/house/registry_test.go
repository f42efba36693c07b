package house_test

import (
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestRegistryEntry validates packaging/server.json, which .ci/release completes, against the schema of
// the MCP registry.
func TestRegistryEntry(t *testing.T) {
	validate(t, "server.schema.json", readJSON(t, "packaging/server.json"))
}

func readJSON(t *testing.T, file string) any {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	v, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return v
}

// validate checks v against a schema of testdata/registry, including formats.
func validate(t *testing.T, schema string, v any) {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile("internal/house/testdata/registry/" + schema)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Error(err)
	}
}
