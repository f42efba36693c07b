package summary_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/summary"
)

// A script is shown by what its commands do.
func ExampleOf() {
	for _, one := range summary.Of([]string{"bash", "-lc", "rg -n main src && cat src/main.go"}) {
		fmt.Printf("%s: %s\n", one.Type, one.Cmd)
	}
	// Output:
	// search: rg -n main src
	// read: cat src/main.go
}
