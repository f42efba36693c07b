package einotool

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/go-json-experiment/json"
)

// Tool is a [tool.InvokableTool] that runs turns of Codex. It is safe for concurrent
// use.
type Tool struct {
	// Client must be set. The caller closes it.
	Client *client.Client
	// Task has what the model cannot choose: all but the prompt and the thread. Its
	// functions may be called by several goroutines at a time.
	Task client.Task
}

var _ tool.InvokableTool = (*Tool)(nil)

// Info implements [tool.BaseTool].
func (t *Tool) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{
		Name: "codex",
		Desc: "Hand a coding task to Codex, an agent that works in a folder of its own and answers when it is done. " +
			"With a threadId it continues an earlier conversation.",
		ParamsOneOf: schema.NewParamsOneOfByParams(map[string]*schema.ParameterInfo{
			"prompt":   {Type: schema.String, Required: true, Desc: "The task, in plain words; Codex sees nothing else."},
			"threadId": {Type: schema.String, Desc: "The conversation to continue."},
		}),
	}, nil
}

// arguments are the arguments of a call.
type arguments struct {
	Prompt   string `json:"prompt"`
	ThreadID string `json:"threadId"`
}

// result is the text that the model reads.
type result struct {
	ThreadID string        `json:"threadId,omitzero"`
	Status   client.Status `json:"status"`
	Content  string        `json:"content"`
}

// InvokableRun implements [tool.InvokableTool]. It returns a JSON object with threadId, status
// (that of a [client.Result]) and content. If ctx has ended, it returns the cause.
func (t *Tool) InvokableRun(ctx context.Context, argumentsInJSON string, _ ...tool.Option) (string, error) {
	if t.Client == nil {
		return "", errors.New("einotool: Tool.Client is nil")
	}
	var a arguments
	err := json.Unmarshal([]byte(argumentsInJSON), &a, json.RejectUnknownMembers(true))
	var wrong *json.SemanticError
	if errors.As(err, &wrong) && wrong.Err != nil {
		err = fmt.Errorf("%s: %w", wrong.JSONPointer, wrong.Err)
	}
	if err == nil && strings.TrimSpace(a.Prompt) == "" {
		err = errors.New("/prompt is missing")
	}
	if err != nil {
		return encode(result{Status: client.Failed, Content: "arguments: " + err.Error()})
	}
	task := t.Task
	task.Prompt, task.Thread = a.Prompt, a.ThreadID
	r, err := t.Client.Run(ctx, task)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, client.ErrClosed):
		return "", err
	case err != nil:
		return encode(result{r.Thread, client.Failed, err.Error()})
	}
	return encode(result{r.Thread, r.Status, strings.Join(append([]string{r.Answer}, r.Notes...), "\n\n")})
}

func encode(r result) (string, error) {
	b, err := json.Marshal(r)
	return string(b), err
}
