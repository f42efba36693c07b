package native

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/command"
	"github.com/codexmcp/codexmcp/codexserver/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
)

var shellTool = model.Tool{
	Name:        "shell",
	Description: "Runs one command in the working folder and returns its output and exit code.",
	Parameters: []byte(`{"type":"object","properties":{
"command":{"type":"array","items":{"type":"string"},"description":"The program and its arguments"},
"workdir":{"type":"string","description":"Folder to run in, relative to the working folder"},
"timeout_ms":{"type":"number","description":"Milliseconds after which the command is stopped"},
"with_escalated_permissions":{"type":"boolean","description":"Ask the user to let this command run outside the sandbox"},
"justification":{"type":"string","description":"With with_escalated_permissions: one sentence for the user that says why"}
},"required":["command"],"additionalProperties":false}`),
}

// shellArguments are what the shell tool is called with.
type shellArguments struct {
	Command       []string `json:"command"`
	Workdir       string   `json:"workdir"`
	TimeoutMS     *float64 `json:"timeout_ms"`
	Escalated     *bool    `json:"with_escalated_permissions"`
	Justification string   `json:"justification"`
}

func (t *turn) shellCall(ctx context.Context, call toolCall) (toolResult, error) {
	var args shellArguments
	if err := json.Unmarshal([]byte(call.arguments), &args); err != nil {
		return toolResult{output: fmt.Sprintf("failed to parse function arguments: %v", err)}, nil
	}
	return t.run1(ctx, call.id, args)
}

func (t *turn) shellAction(ctx context.Context, call toolCall) (toolResult, error) {
	args := shellArguments{Command: call.shell.Command}
	if ms := call.shell.TimeoutMS; ms != nil {
		f := float64(*ms)
		args.TimeoutMS = &f
	}
	if dir := call.shell.WorkingDirectory; dir != nil {
		args.Workdir = *dir
	}
	return t.run1(ctx, call.id, args)
}

func (t *turn) run1(ctx context.Context, callID string, args shellArguments) (toolResult, error) {
	if len(args.Command) == 0 {
		return toolResult{output: "failed to parse function arguments: command is empty"}, nil
	}
	dir := t.now.Cwd
	if args.Workdir != "" {
		dir = args.Workdir
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(t.now.Cwd, dir)
		}
	}
	refusal, err := t.permit(ctx, callID, dir, args)
	if err != nil || refusal != "" {
		return toolResult{output: refusal}, err
	}
	t.commit()
	return t.execute(ctx, callID, dir, args)
}

// permit asks the user where the policy wants it. A refusal is for the model.
func (t *turn) permit(ctx context.Context, callID, dir string, args shellArguments) (refusal string, err error) {
	escalated := args.Escalated != nil && *args.Escalated
	key := strings.Join(args.Command, "\x00")
	switch p := t.now.ApprovalPolicy; {
	case escalated && p != protocol.ApprovalOnRequest:
		return "this command was not run: under the approval policy " + string(p) + " no command may ask for more permissions", nil
	case policy.KnownSafe(args.Command) || t.approved[key]:
		return "", nil
	case p == protocol.ApprovalNever && t.now.SandboxPolicy.Mode != protocol.SandboxDangerFullAccess:
		return "this command was not run: there is no sandbox here, it is not known to be safe, and the approval policy is never", nil
	case !escalated && p != protocol.ApprovalUntrusted && t.now.SandboxPolicy.Mode == protocol.SandboxDangerFullAccess:
		return "", nil
	}
	out := t.host.ApproveExec(ctx, protocol.ExecApprovalRequest{
		CallID: callID, Command: args.Command, Cwd: dir, Reason: args.Justification,
	})
	switch out.Decision {
	case elicit.Approved:
		return "", nil
	case elicit.ApprovedForSession:
		t.approved[key] = true
		return "", nil
	case elicit.Abort:
		return "", &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: errors.New(out.ForModel())}
	}
	return "the command was not run: " + out.ForModel(), nil
}

func (t *turn) execute(ctx context.Context, callID, dir string, args shellArguments) (toolResult, error) {
	env := t.cfg.ShellEnvironment
	spec := command.Spec{
		Argv: args.Command,
		Dir:  dir,
		Env: command.EnvPolicy{
			Inherit:               command.Inherit(env.Inherit),
			IgnoreDefaultExcludes: env.IgnoreDefaultExcludes,
			Exclude:               env.Exclude,
			Set:                   env.Set,
			IncludeOnly:           env.IncludeOnly,
		}.Environ(t.engine.environ),
	}
	if ms := args.TimeoutMS; ms != nil && *ms > 0 {
		spec.Timeout = time.Duration(min(*ms, 24*3600*1000) * float64(time.Millisecond))
	}
	t.emit(protocol.ExecCommandBegin{CallID: callID, Command: args.Command, Cwd: dir, ParsedCmd: policy.Parse(args.Command)})
	res, err := command.Run(ctx, spec, func(s protocol.OutputStream, chunk []byte) {
		t.emit(protocol.ExecCommandOutputDelta{CallID: callID, Stream: s, Chunk: chunk})
	})
	var start *command.StartError
	if errors.As(err, &start) {
		res = command.Result{Stderr: start.Error(), Aggregated: start.Error(), ExitCode: -1}
	} else if err != nil {
		return toolResult{}, err
	}
	t.emit(protocol.ExecCommandEnd{
		CallID: callID, Stdout: res.Stdout, Stderr: res.Stderr, AggregatedOutput: res.Aggregated,
		ExitCode: res.ExitCode, Duration: protocol.Duration(res.Duration), FormattedOutput: res.Formatted(),
	})
	if start != nil {
		return toolResult{output: "execution error: " + start.Error()}, nil
	}
	return toolResult{output: command.ModelOutput(res)}, nil
}
