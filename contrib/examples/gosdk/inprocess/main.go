// Command inprocess hands Codex a task in its own process, over the official Go SDK, and asks the
// person in the terminal. From the folder contrib/examples/gosdk:
//
//	go run ./inprocess "run git init"
//
// The model is that of $CODEX_HOME/config.toml.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/contrib/gosdkmcp"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	native.Main() // does not return if the engine started this process to run commands
	if err := start(context.Background(), strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "inprocess:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, task string) error {
	e, err := native.New(nil)
	if err != nil {
		return err
	}
	return errors.Join(run(ctx, e, task, os.Stdin, os.Stdout), e.Close())
}

// run hands over a task and prints the answer. The person at in and out answers questions.
func run(ctx context.Context, e engine.Engine, task string, in io.Reader, out io.Writer) (err error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "inprocess-example", Version: "1"},
		&mcp.ClientOptions{ElicitationHandler: person(in, out)})
	transport := &gosdkmcp.Transport{Server: codexserver.New(e, nil)}
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	result, err := session.CallTool(ctx,
		&mcp.CallToolParams{Name: "codex", Arguments: map[string]any{"prompt": task, "approval-policy": "untrusted"}})
	if err != nil {
		return err
	}
	if result.IsError {
		return errors.New("the task failed, or was stopped")
	}
	content, _ := result.StructuredContent.(map[string]any)
	// what a model wrote cannot control the terminal
	_, err = fmt.Fprintln(out, elicit.ShowText(fmt.Sprint(content["content"])))
	return err
}

// person returns a handler that asks in a terminal. Every answer but yes and stop declines, also the
// end of the input.
func person(in io.Reader, out io.Writer) func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	lines, one := bufio.NewScanner(in), sync.Mutex{} // two questions may come at a time
	return func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		one.Lock()
		defer one.Unlock()
		if ctx.Err() != nil { // withdrawn while another question was open
			return nil, ctx.Err()
		}
		fmt.Fprint(out, r.Params.Message, " (yes, no, stop) ")
		if !lines.Scan() {
			fmt.Fprintln(out)
			return &mcp.ElicitResult{Action: "decline"}, nil
		}
		switch lines.Text() {
		case "yes":
			return &mcp.ElicitResult{Action: "accept"}, nil
		case "stop":
			return &mcp.ElicitResult{Action: "cancel"}, nil
		}
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
}
