package tool

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/command"
	"github.com/codexmcp/codexmcp/codexserver/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

var shellDefinition = model.Tool{
	Name:        "shell",
	Description: "Runs one program in the working folder and returns its output and exit code. It gets no input and no terminal.",
	Parameters: []byte(`{"type":"object","properties":{
"command":{"type":"array","items":{"type":"string"},"description":"The program and its arguments; for shell syntax [\"bash\",\"-lc\",SCRIPT]"},
"workdir":{"type":"string","description":"Folder to run in, relative to the working folder"},
"timeout_ms":{"type":"number","description":"Milliseconds after which it is stopped, 10000 by default"},
"with_escalated_permissions":{"type":"boolean","description":"True to ask the user to let it run outside the sandbox"},
"justification":{"type":"string","description":"With with_escalated_permissions: one sentence for the user that says why"}
},"required":["command"],"additionalProperties":false}`),
}

// maxTimeout bounds what a model may ask for.
const maxTimeout = 24 * time.Hour

type shellArguments struct {
	Command       []string `json:"command"`
	Workdir       string   `json:"workdir"`
	TimeoutMS     *float64 `json:"timeout_ms"`
	Escalated     *bool    `json:"with_escalated_permissions"`
	Justification string   `json:"justification"`
}

func (a shellArguments) escalated() bool { return a.Escalated != nil && *a.Escalated }

// shellArgumentsOf reads the arguments of either shell tool.
func shellArgumentsOf(call Call) (shellArguments, error) {
	var a shellArguments
	if s := call.Shell; s != nil {
		a.Command = s.Command
		if s.TimeoutMS != nil {
			ms := float64(*s.TimeoutMS)
			a.TimeoutMS = &ms
		}
		if s.WorkingDirectory != nil {
			a.Workdir = *s.WorkingDirectory
		}
	} else if err := decodeArguments(call.Arguments, &a); err != nil {
		return a, err
	}
	switch {
	case len(a.Command) == 0:
		return a, &argumentError{"command", "want at least one word"}
	case a.TimeoutMS != nil && !(*a.TimeoutMS > 0):
		return a, &argumentError{"timeout_ms", "want more than 0"}
	}
	return a, nil
}

func (t *Turn) localShell(ctx context.Context, call Call) (Result, error) { return t.shell(ctx, call) }

// shell runs a command, or applies the patch that it would apply.
func (t *Turn) shell(ctx context.Context, call Call) (Result, error) {
	args, err := shellArgumentsOf(call)
	if err != nil {
		return Result{Output: err.Error()}, nil
	}
	dir := t.Cwd
	if args.Workdir != "" {
		dir = args.Workdir
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(t.Cwd, dir)
		}
	}
	if inv, ok := patch.Recognize(args.Command); ok {
		return t.patch(ctx, call.ID, inv.Text, inv.In(dir))
	}
	r := run{turn: t, id: call.ID, dir: dir, shellArguments: args}
	output, err := r.decide(ctx)
	return Result{Output: output}, err
}

// run is one command on its way.
type run struct {
	turn *Turn
	id   string
	dir  string
	shellArguments
}

// decide lets the policy say what happens to the command, and does it.
func (r run) decide(ctx context.Context) (output string, err error) {
	t := r.turn
	confinement, confineErr := Confinement(nil), error(nil)
	if t.SandboxPolicy.Mode != protocol.SandboxDangerFullAccess {
		confinement, confineErr = t.confine()
	}
	verdict := policy.Decide(policy.Input{
		Policy:           t.ApprovalPolicy,
		Sandbox:          t.SandboxPolicy.Mode,
		SandboxAvailable: confineErr == nil,
		Strict:           t.box.options.Strict,
		Command:          r.Command,
		Escalated:        r.escalated(),
		SessionApproved:  t.box.isApproved(r.Command, r.dir),
	})
	switch verdict.Action {
	case policy.Run:
		return r.free(ctx)
	case policy.RunSandboxed:
		return r.confined(ctx, confinement)
	case policy.Ask:
		reason := r.Justification
		if reason == "" {
			reason = verdict.Reason
		}
		if refusal, err := r.ask(ctx, reason); err != nil || refusal != "" {
			return refusal, err
		}
		return r.free(ctx)
	}
	return verdict.Reason, nil
}

func (r run) ask(ctx context.Context, reason string) (refusal string, err error) {
	return r.turn.askExec(ctx, protocol.ExecApprovalRequest{
		CallID: r.id, Command: r.Command, Cwd: r.dir, Reason: reason,
		LeavesSandbox: r.turn.SandboxPolicy.Mode != protocol.SandboxDangerFullAccess,
	})
}

// free runs the command without a sandbox.
func (r run) free(ctx context.Context) (output string, err error) {
	_, output, err = r.exec(ctx, nil)
	return output, err
}

// confined runs the command in the sandbox and, where the policy says so, again
// outside when the sandbox stopped it.
func (r run) confined(ctx context.Context, c Confinement) (output string, err error) {
	res, output, err := r.exec(ctx, c)
	if err != nil || res == nil || !c.Denied(*res) {
		return output, err
	}
	after := policy.AfterDenial(r.turn.ApprovalPolicy)
	if after.Action != policy.Ask {
		// The model is told what it cannot see from the exit code.
		res.Aggregated += "\n(" + after.Reason + ")\n"
		return command.ModelOutput(*res), nil
	}
	emit := r.turn.Host.Emit
	emit(protocol.BackgroundEvent{Message: fmt.Sprintf("the sandbox stopped the command, exit code %d: %s", res.ExitCode, command.FormatOutput(res.Stderr))})
	if refusal, err := r.ask(ctx, after.Reason); err != nil || refusal != "" {
		return refusal, err
	}
	emit(protocol.BackgroundEvent{Message: "retrying command without sandbox"})
	return r.free(ctx)
}

// exec runs the command and reports it. The result is nil when it did not start.
func (r run) exec(ctx context.Context, c Confinement) (*command.Result, string, error) {
	t := r.turn
	o := t.box.options
	spec := command.Spec{Argv: r.withProfile(), Dir: r.dir, Env: o.Environ, Keepers: o.Keepers, Leftovers: o.Leftovers}
	if c != nil {
		spec.Starter, spec.Leftovers = c, nil
		spec.Env = append(spec.Env[:len(spec.Env):len(spec.Env)], c.Environ()...)
	}
	if r.TimeoutMS != nil {
		spec.Timeout = time.Duration(min(*r.TimeoutMS, float64(maxTimeout/time.Millisecond)) * float64(time.Millisecond))
	}
	t.acting()
	t.Host.Emit(protocol.ExecCommandBegin{CallID: r.id, Command: r.Command, Cwd: r.dir, ParsedCmd: policy.Parse(r.Command)})
	res, err := command.Run(ctx, spec, func(s protocol.OutputStream, chunk []byte) {
		t.Host.Emit(protocol.ExecCommandOutputDelta{CallID: r.id, Stream: s, Chunk: chunk})
	})
	var start *command.StartError
	if errors.As(err, &start) {
		text := startText(start)
		res = command.Result{Stderr: text, Aggregated: text, ExitCode: -1}
	} else if err != nil {
		return nil, "", err
	}
	t.Host.Emit(protocol.ExecCommandEnd{
		CallID: r.id, Stdout: res.Stdout, Stderr: res.Stderr, AggregatedOutput: res.Aggregated,
		ExitCode: res.ExitCode, Duration: protocol.Duration(res.Duration), FormattedOutput: res.Formatted(),
	})
	if start != nil {
		return nil, "execution error: " + start.Error(), nil
	}
	return &res, command.ModelOutput(res), nil
}

// withProfile is what really runs: the command, or the user's shell that reads
// its profile and then becomes it.
func (r run) withProfile() []string {
	shell := r.turn.box.options.Shell
	if shell == "" {
		return r.Command
	}
	return append([]string{shell, "-lc", `exec "$@"`, shell}, r.Command...)
}

// startText is the reason as clients know it: the system's words and number.
func startText(err *command.StartError) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err.Err.Error()
	}
	text := []byte(errno.Error())
	if text[0] >= 'a' && text[0] <= 'z' {
		text[0] -= 'a' - 'A'
	}
	return fmt.Sprintf("%s (os error %d)", text, int(errno))
}
