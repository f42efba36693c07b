package appserver

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// ifApproved says where a line runs after a question, by the mode of its sandbox.
var ifApproved = map[protocol.SandboxMode]string{
	protocol.SandboxReadOnly:       "; if approved, it runs in the read-only sandbox",
	protocol.SandboxWorkspaceWrite: "; if approved, it runs in the sandbox",
}

// Check implements [engine.Checker] by Codex's command/exec, which asks nobody. So this program decides before, by the
// policy of the conversation, and the line runs in the sandbox of the conversation. It leaves that only if a person lets it:
// where Codex has no sandbox, and once more after the sandbox has stopped it.
func (c *conversation) Check(ctx context.Context, l engine.Line) (why string, err error) {
	now, argv := c.settings.now, append(slices.Clone(run.LineShell(c.engine.system, os.Environ())), l.Text)
	if !slices.Contains(protocol.ApprovalPolicies(), now.Policy) { // finer rules, of which none is read here
		now.Policy = protocol.ApprovalUntrusted
	}
	now.Sandbox.Mode = cmp.Or(now.Sandbox.Mode, protocol.SandboxReadOnly)
	full := now.Sandbox.Mode == protocol.SandboxDangerFullAccess
	verdict := decide.Exec(decide.Input{
		Policy: now.Policy, Sandbox: now.Sandbox.Mode, SandboxAvailable: c.settings.confines, Command: argv,
	})
	switch {
	case verdict.Action == decide.Refuse:
		return c.refuseCheck(l.ID, argv, verdict.Reason), nil
	case verdict.Action == decide.RunReadOnly:
		now.Sandbox = protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}
	case !c.settings.confines:
		now.Sandbox = protocol.SandboxPolicy{Mode: protocol.SandboxDangerFullAccess}
	}
	outside := now.Sandbox.Mode == protocol.SandboxDangerFullAccess
	k := &checkRun{line: l, argv: argv, sandbox: now.Sandbox}
	if verdict.Action == decide.Ask || decide.Mentions(c.engine.options.Ask, argv) {
		q := approval.Command{
			Reason:        l.Purpose() + ifApproved[now.Sandbox.Mode],
			LeavesSandbox: outside && !full, NoSandbox: full, Confinable: !outside,
		}
		if verdict.Reason != "" {
			q.Reason += ": " + verdict.Reason
		}
		if why, err := c.askCheck(ctx, k, q); err != nil || why != "" {
			return why, err
		}
	}
	res, why, err := c.runCheck(ctx, k)
	if why != "" || err != nil || outside {
		return why, err
	}
	if why = box.Denial(now.Sandbox.NetworkAccess, now.Cwd, res); why == "" {
		return "", nil
	}
	after := decide.AfterCheck(now.Policy, l.Purpose())
	if after.Action != decide.Ask {
		return why, nil
	}
	c.host.Emit(protocol.BackgroundEvent{
		Message: fmt.Sprintf("the sandbox stopped %s, exit code %d: %s", l.Purpose(),
			res.ExitCode, run.FormatOutput(res.Stderr)),
	})
	refused, err := c.askCheck(ctx, k, approval.Command{Reason: after.Reason, LeavesSandbox: true})
	if err != nil || refused != "" {
		return why, err
	}
	k.sandbox = protocol.SandboxPolicy{Mode: protocol.SandboxDangerFullAccess}
	_, why, err = c.runCheck(ctx, k)
	return why, err
}

// checkRun is what runs as a check, and where.
type checkRun struct {
	line    engine.Line
	argv    []string
	sandbox protocol.SandboxPolicy
	start   []string // nil for argv
	environ []string // nil for that of the conversation's commands
}

// refuseCheck reports that a check is not run, and returns why.
func (c *conversation) refuseCheck(id string, argv []string, why string) string {
	refused := &protocol.Refused{Command: argv, Cwd: c.settings.now.Cwd, Reason: why, CallID: id}
	c.host.Emit(protocol.BackgroundEvent{Refused: refused})
	return why
}

// askCheck asks whether a check may run, and returns why it may not. A rule lets it run outside of the sandbox only as it lets
// a command of the native engine: with programs and an environment that no command can have written.
func (c *conversation) askCheck(
	ctx context.Context, k *checkRun, q approval.Command,
) (why string, err error) {
	dir := c.settings.now.Cwd
	q.CallID, q.Command, q.Cwd, q.FromEngine, q.Once = k.line.ID, k.argv, dir, true, true
	shown := run.HoldFolders(dir)
	defer shown.Close()
	out := c.host.Ask(ctx, q)
	switch {
	case out.Decision == elicit.Abort:
		return "", abortReason(out)
	case !out.Decision.Approves():
		return "the check was not run: " + out.ForModel(), nil
	case shown.Replaced() != "":
		return c.refuseCheck(k.line.ID, k.argv, "the folder "+dir+" was replaced before the user answered"), nil
	case out.Confined && !q.Confinable:
		return c.refuseCheck(k.line.ID, k.argv, "it may run only in the sandbox, which is not possible"), nil
	case out.Ruled && !out.Confined && !q.Confinable:
		return c.leaveByRule(k, out.Environ)
	}
	return "", nil
}

// leaveByRule sets how a check runs that a rule lets out of the sandbox.
func (c *conversation) leaveByRule(k *checkRun, named []string) (why string, err error) {
	commands, plain := decide.Commands(k.argv)
	if !plain {
		return c.refuseCheck(k.line.ID, k.argv,
			"a rule lets it run outside the sandbox, but it is more than plain commands"), nil
	}
	now, environ := &c.settings.now, os.Environ()
	writes := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, WritableRoots: now.Sandbox.WritableRoots}
	roots := box.AskedRoots(writes, now.Cwd, environ)
	start, environ, err := c.engine.programs.Outside(k.argv, commands, now.Cwd, environ, named, roots...)
	if err != nil {
		return c.refuseCheck(k.line.ID, k.argv, "a rule lets it run outside the sandbox, but "+err.Error()), nil
	}
	k.start, k.environ = start, environ
	return "", nil
}

// runCheck runs a check to its end, and returns why that says nothing.
func (c *conversation) runCheck(ctx context.Context, k *checkRun) (res run.Result, why string, err error) {
	if moved := c.settings.moved(); moved != "" {
		return res, c.refuseCheck(k.line.ID, k.argv, moved), nil
	}
	if res, err = c.exec(ctx, k); err != nil {
		why = "it did not run to its end: " + err.Error()
	}
	return res, why, nil
}

// exec runs a command of command/exec in a sandbox to its end, and emits its events. It ends the command when ctx ends.
func (c *conversation) exec(ctx context.Context, k *checkRun) (res run.Result, err error) {
	ch, err := c.engine.child(ctx)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return res, err
	}
	sandbox, environ, argv := k.sandbox, k.environ, k.argv
	if k.start != nil {
		argv = k.start
	}
	if environ == nil {
		environ = c.settings.environ(ch)
	}
	// Codex refuses the one and, in some versions, the other where it has its sandbox on Windows.
	streams := c.engine.system != "windows"
	p := &apptypes.ExecParams{
		Command: argv, Cwd: c.settings.now.Cwd, ProcessID: k.line.ID, TimeoutMS: k.line.Limit.Milliseconds(),
		Env: c.settings.overrides(ch, environ), DisableOutputCap: streams, StreamStdoutStderr: streams,
	}
	if sandbox.Mode == protocol.SandboxWorkspaceWrite { // command/exec knows no working folder of a thread
		sandbox.WritableRoots = append([]string{p.Cwd}, sandbox.WritableRoots...)
	}
	p.SandboxPolicy = sandboxOf(sandbox)
	c.host.Emit(protocol.ExecCommandBegin{
		CallID: p.ProcessID, Command: k.argv, Cwd: p.Cwd, ReadOnly: sandbox.Mode == protocol.SandboxReadOnly,
		ParsedCmd: []protocol.ParsedCommand{{Type: "unknown", Cmd: k.argv[len(k.argv)-1]}},
	})
	out, begun := run.NewCapture(func(s protocol.OutputStream, b []byte) {
		c.host.Emit(protocol.ExecCommandOutputDelta{CallID: p.ProcessID, Stream: s, Chunk: b})
	}), time.Now()
	ch.checks.Store(p.ProcessID, out)
	defer ch.checks.Delete(p.ProcessID)
	var reply apptypes.ExecReply
	ended := make(chan error, 1)
	ch.work(func() { ended <- ch.app.Call(context.Background(), apptypes.CallCommandExec, p, &reply) })
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = ch.call(context.Background(), interruptLimit, apptypes.CallCommandExecTerminate,
			apptypes.ExecRef{ProcessID: p.ProcessID}, nil)
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
	out.Add(protocol.Stdout, []byte(reply.Stdout)) // what was not streamed
	out.Add(protocol.Stderr, []byte(reply.Stderr))
	res = out.Output()
	res.ExitCode, res.Duration = int(reply.ExitCode), time.Since(begun)
	res.TimedOut = res.ExitCode == run.TimeoutExitCode && res.Duration.Milliseconds() >= p.TimeoutMS
	c.host.Emit(protocol.ExecCommandEnd{
		CallID: p.ProcessID, Stdout: res.Stdout, Stderr: res.Stderr, AggregatedOutput: res.Aggregated,
		ExitCode: res.ExitCode,
		Duration: protocol.Duration(res.Duration), FormattedOutput: res.Formatted(), Omitted: res.Omitted,
	})
	return res, nil
}
