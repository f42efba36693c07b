package terminal_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
)

// Text of a model or of a command cannot move the cursor or hide a part of itself.
func ExampleRow() {
	fmt.Println(terminal.Row("rm -rf /\r\x1b[2Kls"))
	// Output:
	// rm -rf / ls
}
