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
	fmt.Println(schema.Check(` {"files": 2} `))
	_, err = schema.Check(`{"files": "two"}`)
	fmt.Println(err)
	// Output:
	// {"files": 2} <nil>
	// at /files: got string, want integer
}
