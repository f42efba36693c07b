// Command appclient runs a turn in the installed Codex, without MCP. It asks in the terminal before a
// command runs, and declines all else.
//
//	go run ./examples/appclient "Run git init."
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
)

func main() {
	if err := run(context.Background(), strings.Join(os.Args[1:], " ")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, prompt string) error {
	in, asking := bufio.NewReader(os.Stdin), make(chan struct{}, 1)
	ask := func(_ context.Context, q *apptypes.CommandApproval) (apptypes.Decision, error) {
		if !appclient.OnlyCommand(q) {
			return apptypes.Decision{}, errors.New("it asks for more than a command") // declines
		}
		asking <- struct{}{} // one question at a time
		defer func() { <-asking }()
		fmt.Printf("run %q in %q? [y/N] ", q.Command, q.Cwd)
		if line, err := in.ReadString('\n'); err != nil || strings.TrimSpace(line) != "y" {
			return apptypes.Decision{Decision: apptypes.CommandExecutionApprovalDecisionDecline}, nil
		}
		return apptypes.Decision{Decision: apptypes.CommandExecutionApprovalDecisionAccept}, nil
	}
	c, err := appclient.Start(ctx, exec.Command("codex", "app-server"),
		&appclient.Options{Answers: appclient.Answers{Command: ask}})
	if err != nil {
		return err
	}
	defer c.Close()
	var thread apptypes.ThreadReply
	readOnly := &apptypes.ThreadParams{ApprovalPolicy: "on-request", Sandbox: "read-only"}
	if err := c.Call(ctx, apptypes.CallThreadStart, readOnly, &thread); err != nil {
		return err
	}
	params := &apptypes.TurnParams{ThreadID: thread.Thread.ID, Input: appclient.Text(prompt)}
	turn, err := c.Begin(params, func(method string, n *apptypes.Note) {
		if item := n.Item; method == apptypes.NoteItemCompleted && item != nil && item.Text != "" {
			fmt.Printf("%s: %q\n", item.Type, item.Text)
		}
	})
	if err == nil {
		_, err = turn.Wait(ctx)
	}
	return err
}
