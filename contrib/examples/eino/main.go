// Command eino is an agent on cloudwego's eino that has Codex as its tool. The agent's model plans
// and hands over; Codex works in this folder, and you answer its questions in the terminal. It
// starts codex-mcp. From the folder contrib/examples/eino:
//
//	OPENAI_API_KEY=… go run . "Find a function without a test, and have a test written."
//
// -url has the agent's model come from elsewhere; that of Codex is in the configuration of codex-mcp.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/contrib/einotool"
	"github.com/codexmcp/codexmcp/elicit"
)

func main() {
	url := flag.String("url", "https://api.openai.com/v1", "the `URL` of the agent's provider")
	name := flag.String("model", "gpt-5", "the agent's `model`")
	flag.Parse()
	cmd := exec.Command("codex-mcp")
	cmd.Stderr = os.Stderr
	config := &openai.ChatModelConfig{BaseURL: *url, Model: *name, APIKey: os.Getenv("OPENAI_API_KEY")}
	if err := run(context.Background(), config, client.Options{Command: cmd}, strings.Join(flag.Args(), " "), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "eino:", err)
		os.Exit(1)
	}
}

// run has an agent work on a task and prints its answer. The person at in and out answers questions.
func run(ctx context.Context, config *openai.ChatModelConfig, o client.Options, task string, in io.Reader, out io.Writer) (err error) {
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	o.Ask = person(in, out)
	c, err := client.Start(ctx, &o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	codex := &einotool.Tool{Client: c, Task: client.Task{Cwd: cwd, Approvals: protocol.ApprovalUntrusted}}
	model, err := openai.NewChatModel(ctx, config)
	if err != nil {
		return err
	}
	agent, err := react.NewAgent(ctx, &react.AgentConfig{
		ToolCallingModel: model,
		ToolsConfig:      compose.ToolsNodeConfig{Tools: []tool.BaseTool{codex}},
	})
	if err != nil {
		return err
	}
	stream, err := agent.Stream(ctx, []*schema.Message{schema.UserMessage(task)})
	if err != nil {
		return err
	}
	answer, err := schema.ConcatMessageStream(stream) // which closes it
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, elicit.ShowText(answer.Content)) // what a model wrote cannot control the terminal
	return err
}

// person returns a function that asks in a terminal. Every answer but yes and stop denies, also the
// end of the input.
func person(in io.Reader, out io.Writer) func(context.Context, *client.Question) elicit.Outcome {
	lines, one := bufio.NewScanner(in), sync.Mutex{} // two questions may come at a time
	return func(ctx context.Context, q *client.Question) elicit.Outcome {
		one.Lock()
		defer one.Unlock()
		if ctx.Err() != nil { // withdrawn while another question was open
			return elicit.Outcome{Decision: elicit.Denied}
		}
		fmt.Fprint(out, q.Message, " (yes, no, stop) ")
		if !lines.Scan() {
			fmt.Fprintln(out)
			return elicit.Outcome{Decision: elicit.Denied}
		}
		decisions := map[string]elicit.Decision{"yes": elicit.Approved, "stop": elicit.Abort}
		return elicit.Outcome{Decision: decisions[lines.Text()]} // no decision denies
	}
}
