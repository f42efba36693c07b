package era_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/internal/era"
)

// A request belongs to 2026-07-28 if its _meta has a member of that version. Any other is of a
// session with a handshake.
func ExampleMeta() {
	for _, params := range []string{
		`{"name":"codex","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`,
		`{"name":"codex","_meta":{"progressToken":1}}`,
		`{"name":"codex"}`,
	} {
		fmt.Println(era.Meta([]byte(params)) != nil)
	}
	// Output:
	// true
	// false
	// false
}
