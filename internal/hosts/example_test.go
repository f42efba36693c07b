package hosts_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/internal/hosts"
)

func Example() {
	for _, name := range []string{"claude-code", "Cline 4", "codex-mcp-client", "stdio: codex-mcp", ""} {
		fmt.Printf("%q %t %t\n", name, hosts.CutsMessages(name), hosts.EndsCallsAfterMinute(name))
	}
	// Output:
	// "claude-code" true false
	// "Cline 4" false true
	// "codex-mcp-client" false true
	// "stdio: codex-mcp" false false
	// "" false false
}
