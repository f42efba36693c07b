package einotool

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"
	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
)

// Tool is a [tool.InvokableTool] that runs turns of Codex. It is safe for concurrent
// use.
type Tool struct {
	// Server must be set.
	Server *codexserver.Server
	// Config is the configuration of new conversations; the model cannot change it.
	// Default: the engine's.
	Config protocol.Config
	// Event is called for each event. It must not block. Nil ignores events.
	Event func(protocol.EventMsg)
	// Approve decides what the server's rules leave open. Several goroutines may call
	// it at a time. Nil denies.
	Approve func(ctx context.Context, r *approval.Request) elicit.Outcome
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
	ThreadID string `json:"threadId,omitzero"`
	Status   string `json:"status"` // completed or failed
	Content  string `json:"content"`
}

// InvokableRun implements [tool.InvokableTool]. It returns a JSON object with threadId,
// status (completed or failed) and content. If ctx has ended, it returns the cause.
func (t *Tool) InvokableRun(ctx context.Context, argumentsInJSON string, _ ...tool.Option) (string, error) {
	if t.Server == nil {
		return "", errors.New("einotool: Tool.Server is nil")
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
		return encode(result{Status: "failed", Content: "arguments: " + err.Error()})
	}
	answer, err := t.Server.Run(ctx, codexserver.Turn{
		Prompt: a.Prompt, Thread: a.ThreadID, Config: t.Config, Event: t.Event, Approve: t.Approve,
	})
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return encode(result{ThreadID: answer.Thread, Status: "failed", Content: err.Error()})
	}
	return encode(result{ThreadID: answer.Thread, Status: "completed", Content: answer.Text})
}

func encode(r result) (string, error) {
	b, err := json.Marshal(r)
	return string(b), err
}
