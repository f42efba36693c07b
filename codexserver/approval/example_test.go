package approval_test

import (
	"context"
	"fmt"
	"os"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// terminal is a place where a person answers every question with a y.
type terminal struct{}

func (terminal) Decider() approval.Decider { return "terminal" }

func (terminal) Ask(_ context.Context, r *approval.Request) (elicit.Outcome, error) {
	fmt.Println(r.Question.Message)
	return elicit.Outcome{Decision: elicit.Approved}, nil
}

// A rule decides about one command, a place about another.
func Example() {
	board := approval.NewBoard(&approval.Options{
		Rules: approval.Rules{Deny: [][]string{{"git", "push"}}},
	}, nil)
	defer board.Attach(terminal{})()

	for _, command := range [][]string{{"git", "push"}, {"git", "commit"}} {
		exec := elicit.ExecQuestion{Command: command, Cwd: "/work"}
		d := board.Decide(context.Background(), &approval.Request{
			Event:    protocol.ExecApprovalRequest{Command: command, Cwd: "/work"},
			Question: exec.Question(),
		})
		fmt.Fprintf(os.Stdout, "%v: %s by %s\n", command, d.Decision, d.By)
	}
	// Output:
	// [git push]: denied by rule
	// Allow Codex to run `git commit` in `/work`?
	// [git commit]: approved by terminal
}
