package interop

import (
	"context"
	"errors"
	"os/exec"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// gosdk is the client of the official Go SDK.
type gosdk struct{}

func (gosdk) release(t *testing.T) string {
	return moduleRelease(t, "github.com/modelcontextprotocol/go-sdk")
}

func (gosdk) cannot(string) string { return "" }

func (gosdk) play(ctx context.Context, s script, enough <-chan struct{}) (r report, err error) {
	var mu sync.Mutex
	options := &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, p *mcp.ProgressNotificationClientRequest) {
			mu.Lock()
			defer mu.Unlock()
			r.Progress = append(r.Progress, progress{p.Params.Progress, p.Params.Message})
		},
	}
	if s.Answer != "" {
		options.ElicitationHandler = func(_ context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			mu.Lock()
			defer mu.Unlock()
			r.Asked = append(r.Asked, q.Params.Message)
			if s.Answer == "error" {
				return nil, errors.New("the form is broken")
			}
			return &mcp.ElicitResult{Action: s.Answer}, nil
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "interop-gosdk", Version: "1"}, options)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: s.command(ctx)}, nil)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	r.Server = session.InitializeResult().ServerInfo.Name
	if s.List {
		for tool, err := range session.Tools(ctx, nil) {
			if err != nil {
				return r, err
			}
			r.Tools = append(r.Tools, tool.Name)
		}
	}
	threadID := ""
	for _, c := range s.Calls {
		params := &mcp.CallToolParams{Name: c.Tool, Arguments: c.arguments(threadID)}
		if c.Progress {
			params.SetProgressToken("progress of the call")
		}
		callCtx, done := c.until(ctx, enough)
		answer, err := session.CallTool(callCtx, params)
		done()
		if err != nil {
			r.Results = append(r.Results, result{Failed: err.Error()})
			continue
		}
		content, _ := answer.StructuredContent.(map[string]any)
		threadID, _ = content["threadId"].(string)
		got := result{IsError: answer.IsError, ThreadID: threadID}
		for _, block := range answer.Content {
			if text, ok := block.(*mcp.TextContent); ok {
				got.Text = append(got.Text, text.Text)
			}
		}
		r.Results = append(r.Results, got)
	}
	return r, nil
}

// command starts the server as a client's child.
func (s script) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.Command[0], s.Command[1:]...)
	cmd.Dir, cmd.Env = s.Cwd, s.environment()
	return cmd
}

func (s script) environment() (env []string) {
	for name, value := range s.Env {
		env = append(env, name+"="+value)
	}
	return env
}

// arguments are the call's, with the thread it goes on with.
func (c call) arguments(threadID string) map[string]any {
	arguments := map[string]any{}
	for name, value := range c.Arguments {
		arguments[name] = value
	}
	if c.Reply {
		arguments["threadId"] = threadID
	}
	return arguments
}

// until is the context of the call.
func (c call) until(ctx context.Context, enough <-chan struct{}) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	if !c.Cancel {
		return ctx, cancel
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-enough:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); <-watched }
}

// moduleRelease is the path and version of a Go module that was built in.
func moduleRelease(t *testing.T, path string) string {
	t.Helper()
	version, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	return "`" + path + "` " + string(version[:len(version)-1])
}
