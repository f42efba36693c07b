// Command adk is an agent on Google's Agent Development Kit that has Codex as its tool, in the same
// process. The agent's model plans and hands over; Codex works in this folder, and you answer its
// questions in the terminal. From the folder contrib/examples/adk:
//
//	GEMINI_API_KEY=… go run . "Find a function without a test, and have a test written."
//
// The model and the approval policy of Codex are those of $CODEX_HOME/config.toml.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
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
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model/gemini"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/mcptoolset"
	"google.golang.org/genai"
)

func main() {
	native.Main() // does not return if the engine started this process to run commands
	name := flag.String("model", "gemini-2.5-pro", "the agent's `model`")
	flag.Parse()
	if err := start(context.Background(), *name, strings.Join(flag.Args(), " ")); err != nil {
		fmt.Fprintln(os.Stderr, "adk:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, name, task string) error {
	e, err := native.New(nil)
	if err != nil {
		return err
	}
	return errors.Join(run(ctx, e, name, nil, task, os.Stdin, os.Stdout), e.Close())
}

// run has an agent work on a task and prints what it says. The person at in and out answers questions.
func run(ctx context.Context, e engine.Engine, name string, provider *genai.ClientConfig, task string, in io.Reader, out io.Writer) error {
	// The agent's model writes the calls: it can say what to do, but not what needs no question.
	server := codexserver.New(e, &codexserver.Options{
		Calls: codexserver.CallOptions{
			Tools: []string{}, LockedArguments: []string{"approval-policy", "config", "cwd", "model", "profile", "sandbox"},
		},
	})
	client := mcp.NewClient(&mcp.Implementation{Name: "adk-example", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: person(in, out)})
	codex, err := mcptoolset.New(mcptoolset.Config{Client: client, Transport: &gosdkmcp.Transport{Server: server}})
	if err != nil {
		return err
	}
	model, err := gemini.NewModel(ctx, name, provider)
	if err != nil {
		return err
	}
	planner, err := llmagent.New(llmagent.Config{Name: "planner", Model: model, Toolsets: []tool.Toolset{codex}})
	if err != nil {
		return err
	}
	r, err := runner.New(runner.Config{AppName: "adk-example", Agent: planner, SessionService: session.InMemoryService(), AutoCreateSession: true})
	if err != nil {
		return err
	}
	for event, err := range r.Run(ctx, "user", "session", genai.NewContentFromText(task, genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			return err
		}
		if event.Content == nil {
			continue
		}
		for _, part := range event.Content.Parts {
			if part.Text != "" {
				fmt.Fprintln(out, elicit.ShowText(part.Text)) // what a model wrote cannot control the terminal
			}
		}
	}
	return nil
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
