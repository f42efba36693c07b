package codexserver_test

import (
	"context"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// A list denies one command, a function decides about patches, and a person is asked about the rest.
func ExampleOptions_rules() {
	rules := approval.Rules{
		Deny: [][]string{{"git", "push"}},
		Decide: func(_ context.Context, r *approval.Request) (elicit.Outcome, bool) {
			_, patch := r.Subject.(approval.Patch)
			return elicit.Outcome{Decision: elicit.Approved}, patch
		},
	}
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		for _, command := range [][]string{{"git", "push"}, {"git", "commit"}} {
			out := host.Ask(ctx, approval.Command{Command: command, Cwd: "/work"})
			fmt.Printf("%v: %s\n", command, out.Decision)
		}
		fmt.Printf("patch: %s\n", host.Ask(ctx, approval.Patch{Cwd: "/work"}).Decision)
		return nil
	})
	_, err := codexserver.New(e, &codexserver.Options{Rules: rules}).Run(context.Background(), codexserver.Turn{
		Prompt: "publish it",
		Approve: func(_ context.Context, r *approval.Request) elicit.Outcome {
			fmt.Println(r.Question.Message)
			return elicit.Outcome{Decision: elicit.Approved}
		},
	})
	fmt.Println(err)
	// Output:
	// [git push]: denied
	// Allow Codex to run `git commit` in `/work`?
	// [git commit]: approved
	// patch: approved
	// <nil>
}
