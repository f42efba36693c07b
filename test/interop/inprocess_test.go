package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"
	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	codexclient "github.com/codexmcp/codexmcp/codexserver/client"
	coreengine "github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/contrib/einotool"
	"github.com/codexmcp/codexmcp/contrib/gosdkmcp"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// embedder is a program with the server in its own process. delegate hands over a task
// in a folder, answers its question, and returns the result.
type embedder struct {
	name, module string
	delegate     func(ctx context.Context, server *codexserver.Server, cwd string, answer string, asked func(string)) (string, error)
}

var embedders = []embedder{
	{"Go SDK client on `gosdkmcp`", "github.com/modelcontextprotocol/go-sdk", delegateBySDK},
	{"eino agent with `einotool`", "github.com/cloudwego/eino", delegateByEino},
}

func delegateBySDK(ctx context.Context, server *codexserver.Server, cwd, answer string, asked func(string)) (string, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "interop-inprocess", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked(q.Params.Message)
			return &mcp.ElicitResult{Action: answer}, nil
		},
	})
	session, err := client.Connect(ctx, &gosdkmcp.Transport{Server: server}, nil)
	if err != nil {
		return "", err
	}
	var said result
	r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "codex", Arguments: map[string]any{
		"prompt": "the task", "cwd": cwd, "approval-policy": "untrusted", "sandbox": "danger-full-access",
	}})
	if err == nil {
		said, err = asResult(r)
	}
	if err == nil && len(said.Content) == 0 {
		err = errors.New("a result without text")
	}
	if err = errors.Join(err, session.Close()); err != nil {
		return "", err
	}
	return said.Content[0].Text, nil
}

// decisions are the actions of MCP as outcomes.
var decisions = map[string]elicit.Decision{"accept": elicit.Approved, "decline": elicit.Denied, "cancel": elicit.Abort}

func delegateByEino(ctx context.Context, server *codexserver.Server, cwd, answer string, asked func(string)) (string, error) {
	c, err := codexclient.Start(ctx, &codexclient.Options{Server: server, Ask: func(_ context.Context, q *codexclient.Question) elicit.Outcome {
		asked(q.Message)
		return elicit.Outcome{Decision: decisions[answer]}
	}})
	if err != nil {
		return "", err
	}
	defer c.Close()
	codex := &einotool.Tool{Client: c, Task: codexclient.Task{Cwd: cwd, Approvals: protocol.ApprovalUntrusted, Sandbox: protocol.SandboxDangerFullAccess}}
	agent, err := react.NewAgent(ctx, &react.AgentConfig{
		ToolCallingModel: &delegator{}, ToolsConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{codex}},
	})
	if err != nil {
		return "", err
	}
	said, err := agent.Generate(ctx, []*schema.Message{schema.UserMessage("let codex do the task")})
	if err != nil {
		return "", err
	}
	return said.Content, nil
}

// delegator is the model of an agent that hands its task over and repeats the result.
type delegator struct{}

// WithTools implements [model.ToolCallingChatModel].
func (d *delegator) WithTools(tools []*schema.ToolInfo) (model.ToolCallingChatModel, error) {
	if len(tools) != 1 || tools[0].Name != "codex" {
		return nil, fmt.Errorf("tools %+v", tools)
	}
	return d, nil
}

// Generate implements [model.BaseChatModel].
func (*delegator) Generate(_ context.Context, in []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	if last := in[len(in)-1]; last.Role == schema.Tool {
		return schema.AssistantMessage(last.Content, nil), nil
	}
	return schema.AssistantMessage("", []schema.ToolCall{
		{ID: "1", Function: schema.FunctionCall{Name: "codex", Arguments: `{"prompt": "the task"}`}},
	}), nil
}

// Stream implements [model.BaseChatModel].
func (d *delegator) Stream(ctx context.Context, in []*schema.Message, o ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	m, err := d.Generate(ctx, in, o...)
	return schema.StreamReaderFromArray([]*schema.Message{m}), err
}

// inProcess returns the engine that a program embeds.
func inProcess(e engine, home, codex string) (interface {
	coreengine.Engine
	io.Closer
}, error) {
	if e.name == "native" {
		return native.New(&native.Options{CodexHome: home})
	}
	return appserver.New(&appserver.Options{Path: codex, CodexHome: home})
}

// TestInProcess has programs that embed the server run a turn with an approval, on both
// engines.
func TestInProcess(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // Codex runs commands in login shells, which read what is there
	all := slices.DeleteFunc(engines(t), func(e engine) bool { return e.over != overStdio })
	answers := []string{"accept", "decline", "cancel"}
	var mu sync.Mutex
	rows := map[string]string{}
	t.Run("cells", func(t *testing.T) {
		for _, e := range all {
			for _, p := range embedders {
				for _, answer := range answers {
					t.Run(e.name+"/"+p.name+"/"+answer, func(t *testing.T) {
						t.Parallel()
						defer func() {
							mu.Lock()
							defer mu.Unlock()
							rows[e.name+p.name+answer] = map[bool]string{false: "yes", true: "NO"}[t.Failed()]
						}()
						embed(t, e, p, answer)
					})
				}
			}
		}
	})
	if len(rows) != len(all)*len(embedders)*len(answers) {
		return // -run chose some
	}
	var b strings.Builder
	b.WriteString("| program | package | engine | accept | decline | cancel |\n|---|---|---|---|---|---|\n")
	for _, p := range embedders {
		for _, e := range all {
			fmt.Fprintf(&b, "| %s | %s | %s |", p.name, moduleRelease(t, p.module), e.name)
			for _, answer := range answers {
				fmt.Fprintf(&b, " %s |", rows[e.name+p.name+answer])
			}
			b.WriteString("\n")
		}
	}
	compareDocument(t, interopPage, "in process", b.String())
}

// embed plays one cell.
func embed(t *testing.T, e engine, p embedder, answer string) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	provider := providertest.New(providertest.Call(e.run("call_1", "touch", "made")), providertest.Say("done"))
	defer provider.Close()
	cwd := t.TempDir()
	core, err := inProcess(e, newHome(t, provider, e.wire), newest(t))
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	var mu sync.Mutex
	var asked []string
	said, err := p.delegate(ctx, codexserver.New(core, nil), cwd, answer, func(message string) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, message)
	})
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 1 || !strings.Contains(asked[0], "touch made") {
		t.Errorf("asked %q", asked)
	}
	if _, err := os.Stat(filepath.Join(cwd, "made")); (err == nil) != (answer == "accept") {
		t.Errorf("the command ran: %v", err == nil)
	}
	if done := strings.Contains(said, "done"); done != (answer != "cancel") {
		t.Errorf("the result: %q", said)
	}
}
