package appserver

import (
	"cmp"
	"context"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Check implements [engine.Checker] by Codex's command/exec, which asks nobody. So this program decides before, by the
// policy of the conversation, and the check runs in the sandbox of the conversation, whoever approves it.
func (c *conversation) Check(ctx context.Context, id, line string, limit time.Duration) (why string, err error) {
	now, argv := c.settings.now, append(slices.Clone(run.LineShell(runtime.GOOS, os.Environ())), line)
	if !slices.Contains(protocol.ApprovalPolicies(), now.Policy) { // finer rules, of which none is read here
		now.Policy = protocol.ApprovalUntrusted
	}
	now.Sandbox.Mode = cmp.Or(now.Sandbox.Mode, protocol.SandboxReadOnly)
	verdict := decide.Exec(decide.Input{Policy: now.Policy, Sandbox: now.Sandbox.Mode, SandboxAvailable: true, Command: argv})
	if verdict.Action == decide.RunReadOnly {
		now.Sandbox = protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}
	}
	full := now.Sandbox.Mode == protocol.SandboxDangerFullAccess
	switch {
	case verdict.Action == decide.Refuse:
		why = verdict.Reason
	case verdict.Action == decide.Ask, decide.Mentions(c.engine.options.Ask, argv):
		shown := run.HoldFolders(now.Cwd)
		defer shown.Close()
		out := c.host.ApproveExec(ctx, protocol.ExecApprovalRequest{
			CallID: id, Command: argv, Cwd: now.Cwd, Reason: "the check of the turn", FromEngine: true, NoSandbox: full, Confinable: !full, Once: true,
		})
		switch {
		case out.Decision == elicit.Abort:
			return "", abortReason(out)
		case !out.Decision.Approves():
			return "the check was not run: " + out.ForModel(), nil
		case shown.Replaced() != "":
			why = "the folder " + now.Cwd + " was replaced before the user answered"
		}
	}
	if why = cmp.Or(why, c.settings.moved()); why != "" {
		c.host.Emit(protocol.BackgroundEvent{Refused: &protocol.Refused{Command: argv, Cwd: now.Cwd, Reason: why, CallID: id}})
		return why, nil
	}
	res, err := c.exec(ctx, &apptypes.ExecParams{Command: argv, Cwd: now.Cwd, ProcessID: id, TimeoutMS: limit.Milliseconds()}, now.Sandbox)
	switch {
	case err != nil:
		return "it did not run to its end: " + err.Error(), nil
	case full:
		return "", nil
	}
	return box.Denial(now.Sandbox.NetworkAccess, now.Cwd, res), nil
}

// exec runs a command of command/exec in a sandbox to its end, and emits its events. It ends the command when ctx ends.
func (c *conversation) exec(ctx context.Context, p *apptypes.ExecParams, sandbox protocol.SandboxPolicy) (res run.Result, err error) {
	ch, err := c.engine.child(ctx)
	if err = cmp.Or(err, context.Cause(ctx)); err != nil {
		return res, err
	}
	if sandbox.Mode == protocol.SandboxWorkspaceWrite { // command/exec knows no working folder of a thread
		sandbox.WritableRoots = append([]string{p.Cwd}, sandbox.WritableRoots...)
	}
	p.SandboxPolicy, p.DisableOutputCap, p.StreamStdoutStderr = sandboxOf(sandbox), true, true
	c.host.Emit(protocol.ExecCommandBegin{
		CallID: p.ProcessID, Command: p.Command, Cwd: p.Cwd, ReadOnly: sandbox.Mode == protocol.SandboxReadOnly,
		ParsedCmd: []protocol.ParsedCommand{{Type: "unknown", Cmd: p.Command[len(p.Command)-1]}},
	})
	out, begun := run.NewCapture(func(s protocol.OutputStream, b []byte) {
		c.host.Emit(protocol.ExecCommandOutputDelta{CallID: p.ProcessID, Stream: s, Chunk: b})
	}), time.Now()
	ch.checks.Store(p.ProcessID, out)
	defer ch.checks.Delete(p.ProcessID)
	var reply apptypes.ExecReply
	ended := make(chan error, 1)
	ch.run.Go(func() { ended <- ch.app.Call(context.Background(), apptypes.CallCommandExec, p, &reply) })
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = ch.call(context.Background(), interruptLimit, apptypes.CallCommandExecTerminate, apptypes.ExecRef{ProcessID: p.ProcessID}, nil)
		select {
		case <-ended:
		case <-time.After(interruptLimit):
			ch.kill(late(apptypes.CallCommandExec, interruptLimit))
			<-ended
		}
		return res, context.Cause(ctx)
	}
	if err != nil {
		return res, ch.explain(context.Background(), err)
	}
	res = out.Output()
	res.ExitCode, res.Duration = int(reply.ExitCode), time.Since(begun)
	res.TimedOut = res.ExitCode == run.TimeoutExitCode && res.Duration.Milliseconds() >= p.TimeoutMS
	c.host.Emit(protocol.ExecCommandEnd{
		CallID: p.ProcessID, Stdout: res.Stdout, Stderr: res.Stderr, AggregatedOutput: res.Aggregated, ExitCode: res.ExitCode,
		Duration: protocol.Duration(res.Duration), FormattedOutput: res.Formatted(), Omitted: res.Omitted,
	})
	return res, nil
}
