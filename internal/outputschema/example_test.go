package outputschema_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/internal/outputschema"
)

func Example() {
	schema, err := outputschema.Compile([]byte(`{"type":"object","required":["files"],"properties":{"files":{"type":"integer"}}}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(schema.CheckValue(map[string]any{"files": 2.0}))
	fmt.Println(schema.CheckValue(map[string]any{"files": "two"}))
	// Output:
	// <nil>
	// at /files: got string, want integer
}
