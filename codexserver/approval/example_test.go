package approval_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/approval"
)

// A question about a command. That of codexserver.Options has rules.
func Example() {
	fmt.Println((approval.Command{Command: []string{"git", "push"}, Cwd: "/work"}).Question("Codex", "").Message)
	// Output: Allow Codex to run `git push` in `/work`?
}
