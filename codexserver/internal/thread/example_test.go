package thread_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// A connection has a share of the server's threads. The log of a thread tells what it did.
func Example() {
	ctx := context.Background()
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{Command: []string{"git", "push"}, Cwd: "/work"})
		host.Emit(protocol.AgentMessage{Message: "not pushed: " + out.ForModel()})
		return nil
	})
	table := thread.NewTable(e, &approve.Options{Rules: approval.Rules{Deny: [][]string{{"git", "push"}}}})
	share := table.Share("")
	defer share.Close()

	th, err := share.Start(ctx, protocol.Config{}, thread.Attend{})
	if err != nil {
		fmt.Println(err)
		return
	}
	turn := th.Begin(thread.Attend{}, protocol.TurnInput{Items: protocol.TextInput("publish it")}) // the thread's turns run in this order
	err = turn.Run(ctx)
	fmt.Println("error:", err)
	p, _ := th.Log().Transcript(0, 1000)
	_, said, _ := strings.Cut(p.Text, "\n") // after the line with the time
	fmt.Print(said)
	// Output:
	// error: <nil>
	// user:
	//   publish it
	// question:
	//   Allow Codex to run `git push` in `/work`?
	// denied by rule:
	//   declined: a rule of the user denies this command, or what it may hide: write its programs and their words plainly
	// codex:
	//   not pushed: declined: a rule of the user denies this command, or what it may hide: write its programs and their words plainly
}
