package appserver

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Check implements [engine.Checker] by Codex's command/exec, which asks nobody. So this program decides before, by the
// policy of the conversation, and the check runs in the sandbox of the conversation, whoever approves it.
func (c *conversation) Check(ctx context.Context, check engine.Check) (engine.Checked, error) {
	now := &c.settings.now
	r := checkRun{conversation: c, id: check.ID, limit: check.Limit, argv: append(slices.Clone(run.LineShell(runtime.GOOS, os.Environ())), check.Line), sandbox: now.Sandbox}
	policy := now.Policy
	if !slices.Contains(protocol.ApprovalPolicies(), policy) { // finer rules, of which none is read here
		policy = protocol.ApprovalUntrusted
	}
	r.sandbox.Mode = cmp.Or(r.sandbox.Mode, protocol.SandboxReadOnly)
	verdict := decide.Exec(decide.Input{Policy: policy, Sandbox: r.sandbox.Mode, SandboxAvailable: true, Command: r.argv})
	switch {
	case verdict.Action == decide.Refuse:
		return r.refused(verdict.Reason), nil
	case verdict.Action == decide.RunReadOnly:
		r.sandbox = protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}
	}
	if verdict.Action == decide.Ask || decide.Mentions(c.engine.options.Ask, r.argv) {
		if why, err := r.ask(ctx); err != nil || why != "" {
			return engine.Checked{Why: why}, err
		}
	}
	if folder := c.settings.moved(); folder != "" {
		return r.refused("a link is in the place of the folder " + folder + ", in which commands may write"), nil
	}
	return r.run(ctx)
}

// checkRun is one run of a check.
type checkRun struct {
	*conversation
	id      string
	limit   time.Duration
	argv    []string
	sandbox protocol.SandboxPolicy
}

// refused reports that the check does not run.
func (r *checkRun) refused(why string) engine.Checked {
	r.host.Emit(protocol.BackgroundEvent{Refused: &protocol.Refused{Command: r.argv, Cwd: r.settings.now.Cwd, Reason: why, CallID: r.id}})
	return engine.Checked{Why: why}
}

// ask asks whether the check may run. It returns why it may not, or "".
func (r *checkRun) ask(ctx context.Context) (why string, err error) {
	cwd := r.settings.now.Cwd
	shown := run.HoldFolders(cwd)
	defer shown.Close()
	out := r.host.ApproveExec(ctx, protocol.ExecApprovalRequest{
		CallID: r.id, Command: r.argv, Cwd: cwd, Reason: "the check of the turn", FromEngine: true,
		NoSandbox: r.sandbox.Mode == protocol.SandboxDangerFullAccess, Confinable: r.sandbox.Mode != protocol.SandboxDangerFullAccess, Once: true,
	})
	switch {
	case out.Decision == elicit.Abort:
		return "", &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: abortReason(out)}
	case !out.Decision.Approves():
		return "the check was not run: " + out.ForModel(), nil
	case shown.Replaced() != "":
		return "the check was not run: the folder " + cwd + " was replaced before the user answered", nil
	}
	return "", nil
}

// run runs the check in the sandbox. It ends the check when ctx ends.
func (r *checkRun) run(ctx context.Context) (engine.Checked, error) {
	ch, err := r.engine.child(ctx)
	if err != nil {
		return engine.Checked{Why: err.Error()}, nil
	}
	cwd, begun := r.settings.now.Cwd, time.Now()
	if r.sandbox.Mode == protocol.SandboxWorkspaceWrite { // command/exec knows no working folder of a thread
		r.sandbox.WritableRoots = append([]string{cwd}, r.sandbox.WritableRoots...)
	}
	r.host.Emit(protocol.ExecCommandBegin{
		CallID: r.id, Command: r.argv, Cwd: cwd, ParsedCmd: []protocol.ParsedCommand{{Type: "unknown", Cmd: r.argv[len(r.argv)-1]}},
		ReadOnly: r.sandbox.Mode == protocol.SandboxReadOnly,
	})
	out := run.NewCapture(func(s protocol.OutputStream, b []byte) {
		r.host.Emit(protocol.ExecCommandOutputDelta{CallID: r.id, Stream: s, Chunk: b})
	})
	code, err := ch.exec(ctx, out, &apptypes.ExecParams{
		Command: r.argv, Cwd: cwd, ProcessID: r.id, SandboxPolicy: sandboxOf(r.sandbox), TimeoutMS: r.limit.Milliseconds(),
		DisableOutputCap: true, StreamStdoutStderr: true,
	})
	res := out.Output()
	res.ExitCode, res.Duration = code, time.Since(begun)
	res.TimedOut = code == run.TimeoutExitCode && res.Duration >= r.limit
	r.host.Emit(protocol.ExecCommandEnd{
		CallID: r.id, Stdout: res.Stdout, Stderr: res.Stderr, AggregatedOutput: res.Aggregated, ExitCode: code,
		Duration: protocol.Duration(res.Duration), FormattedOutput: res.Formatted(), Omitted: res.Omitted,
	})
	switch {
	case ctx.Err() != nil:
		return engine.Checked{}, context.Cause(ctx)
	case err != nil:
		return engine.Checked{Why: "it did not run to its end: " + err.Error()}, nil
	}
	checked := engine.Checked{ExitCode: &code, Output: res.Formatted()}
	if r.sandbox.Mode != protocol.SandboxDangerFullAccess {
		if line := box.Denial(r.sandbox.NetworkAccess, cwd, res); line != "" {
			checked.Why = box.DenialWords(line, cwd)
		}
	}
	return checked, nil
}

// exec runs a command of command/exec to its end, and returns its exit code, -1 with an error. It ends the command when ctx
// ends.
func (c *child) exec(ctx context.Context, out *run.Capture, p *apptypes.ExecParams) (code int, err error) {
	c.mu.Lock()
	c.checks[p.ProcessID] = out
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.checks, p.ProcessID)
	}()
	over, ended := context.WithCancel(context.Background())
	defer ended()
	defer context.AfterFunc(ctx, func() {
		c.run.Go(func() {
			failed := c.control(over, apptypes.CallCommandExecTerminate, apptypes.ExecRef{ProcessID: p.ProcessID}, nil)
			select {
			case <-over.Done():
			case <-time.After(interruptLimit):
				c.kill(errors.Join(late(apptypes.CallCommandExec, interruptLimit), failed))
			}
		})
	})()
	var reply apptypes.ExecReply
	err = c.app.Call(context.Background(), apptypes.CallCommandExec, p, &reply)
	switch {
	case ctx.Err() != nil:
		return -1, context.Cause(ctx)
	case err != nil:
		return -1, c.explain(context.Background(), err)
	}
	return int(reply.ExitCode), nil
}

// printed adds a piece of output to the check that printed it.
func (c *child) printed(n *apptypes.Note) {
	c.mu.Lock()
	out := c.checks[n.ProcessID]
	c.mu.Unlock()
	if piece, err := base64.StdEncoding.DecodeString(n.DeltaBase64); out != nil && err == nil {
		out.Add(protocol.OutputStream(n.Stream), piece)
	}
}
