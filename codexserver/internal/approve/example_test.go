package approve_test

import (
	"context"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// A rule denies one command. Nobody can be asked about the other, so it is denied, too.
func Example() {
	b := approve.New(&approve.Options{Rules: approval.Rules{Deny: [][]string{{"git", "push"}}}}, nil)
	for _, command := range [][]string{{"git", "push"}, {"make"}} {
		d := b.Decide(context.Background(), &approval.Request{
			Event:    protocol.ExecApprovalRequest{Command: command, Cwd: "/work"},
			Question: approval.ExecQuestion(protocol.ExecApprovalRequest{Command: command, Cwd: "/work"}, "", ""),
		}, false)
		fmt.Println(command, d.Decision, d.By)
	}
	// Output:
	// [git push] denied rule
	// [make] denied nobody
}
