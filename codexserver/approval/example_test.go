package approval_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// A question about a command. That of codexserver.Options has rules.
func Example() {
	fmt.Println(approval.ExecQuestion(protocol.ExecApprovalRequest{Command: []string{"git", "push"}, Cwd: "/work"}, "Codex", "").Message)
	// Output: Allow Codex to run `git push` in `/work`?
}
