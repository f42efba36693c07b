package einotool_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/contrib/einotool"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

// pusher is an engine that asks whether it may push.
func pusher(ctx context.Context, host engine.Host, input []protocol.InputItem) error {
	if protocol.TextOf(input) == "fail" {
		return errors.New("no remote")
	}
	out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "1", Command: []string{"git", "push"}, Cwd: "/work"})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	host.Emit(protocol.AgentMessage{Message: string(out.Decision)})
	return nil
}

func approve(_ context.Context, q *client.Question) elicit.Outcome {
	fmt.Println(q.Message)
	return elicit.Outcome{Decision: elicit.Approved}
}

// connect returns a tool with a server of this process.
func connect(t *testing.T, o client.Options) *einotool.Tool {
	t.Helper()
	o.Server = codexserver.New(engine.TurnFunc(pusher), nil)
	c, err := client.Start(t.Context(), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return &einotool.Tool{Client: c}
}

var threads = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)

// An agent's node calls the tool for a model.
func Example() {
	ctx := context.Background()
	c, err := client.Start(ctx, &client.Options{Server: codexserver.New(engine.TurnFunc(pusher), nil), Ask: approve})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	codex := &einotool.Tool{Client: c}
	node, err := compose.NewToolNode(ctx, &compose.ToolsNodeConfig{Tools: []tool.BaseTool{codex}})
	if err != nil {
		fmt.Println(err)
		return
	}
	answers, err := node.Invoke(ctx, schema.AssistantMessage("", []schema.ToolCall{
		{ID: "1", Function: schema.FunctionCall{Name: "codex", Arguments: `{"prompt": "publish it"}`}},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(threads.ReplaceAllString(answers[0].Content, "ID"))
	// Output:
	// Allow Codex to run `git push` in `/work`?
	// {"threadId":"ID","status":"completed","content":"approved"}
}

func TestInvokableRun(t *testing.T) {
	codex := connect(t, client.Options{})
	for arguments, want := range map[string]string{
		`{"prompt": "publish"}`:                 `{"threadId":"ID","status":"completed","content":"denied\n\nThis MCP client cannot show approval requests, so what needs an approval was not done. Use a client that supports elicitation in form mode."}`,
		`{"prompt": "fail"}`:                    `{"threadId":"ID","status":"failed","content":"no remote"}`,
		`{"prompt": " "}`:                       `{"status":"failed","content":"arguments: /prompt is missing"}`,
		`{"prompt": "go", "threadId": "other"}`: `{"threadId":"other","status":"failed","content":"codex-reply: no conversation \"other\" in this session"}`,
		`{"prompt": "go", "sandbox": "none"}`:   `{"status":"failed","content":"arguments: /sandbox: unknown object member name"}`,
	} {
		got, err := codex.InvokableRun(t.Context(), arguments)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, threads.ReplaceAllString(got, "ID")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", arguments, diff)
		}
	}
}

func TestInvokableRunEndsWithItsContext(t *testing.T) {
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	codex := connect(t, client.Options{Ask: func(ctx context.Context, _ *client.Question) elicit.Outcome {
		cancel(enough)
		<-ctx.Done()
		return elicit.Outcome{Decision: elicit.Approved}
	}})
	if _, err := codex.InvokableRun(ctx, `{"prompt": "publish"}`); !errors.Is(err, enough) {
		t.Errorf("error %v", err)
	}
}

func TestNoClient(t *testing.T) {
	if _, err := new(einotool.Tool).InvokableRun(t.Context(), `{"prompt": "go"}`); err == nil {
		t.Error("it ran without a client")
	}
}
