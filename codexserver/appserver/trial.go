package appserver

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/plain"
)

const (
	trialLimit = 10 * time.Second // of a trial
	maxSaid    = 200              // of what the sandbox says, in characters
)

// trial is whether Codex can run a command in a sandbox of a mode. Codex itself does not say it before the model has
// tried, and then to the model alone.
type trial struct {
	done chan struct{}
	err  *UnconfinedError // set when done is closed; nil if it can, and if that is not known
}

// UnconfinedError means that Codex can run no command in its sandbox on this system.
type UnconfinedError struct {
	// Why is what the sandbox says.
	Why string
	// Help says what helps.
	Help string
}

// Error implements error.
func (e *UnconfinedError) Error() string {
	return "Codex's sandbox runs no command on this system: " + e.Why + "; " + e.Help
}

// OnlyOutside is what follows from an [UnconfinedError] where a person can be asked.
const OnlyOutside = "until then a command runs only outside of it, if the model asks for that and a person approves"

const (
	// helpNamespaces is what helps where Codex's sandbox is made of namespaces.
	helpNamespaces = "it needs user namespaces: in a container allow unshare and mount " +
		"(--security-opt seccomp=unconfined --security-opt apparmor=unconfined); " +
		"where kernel.apparmor_restrict_unprivileged_userns is 1, give Codex a profile of AppArmor; " +
		"or use --engine native, whose sandbox needs none"
	helpOther = "use --engine native, or the sandbox danger-full-access"
)

// tries returns why Codex can run no command in a sandbox of the mode of that one, as the first trial in this
// app-server found, or nil. The trial has the folder alone as a writable one: others would make it that of one
// conversation.
func (c *child) tries(
	ctx context.Context, system string, sandbox protocol.SandboxPolicy, cwd string,
) (*UnconfinedError, error) {
	sandbox.Mode = cmp.Or(sandbox.Mode, protocol.SandboxReadOnly)
	if system == "windows" || sandbox.Mode == protocol.SandboxDangerFullAccess {
		return nil, nil
	}
	c.mu.Lock()
	t := c.trials[sandbox.Mode]
	first := t == nil
	if first {
		t = &trial{done: make(chan struct{})}
		c.trials[sandbox.Mode] = t
	}
	c.mu.Unlock()
	if first {
		c.work(func() {
			defer close(t.done)
			t.err = c.try(system, sandbox, cwd)
		})
	}
	select {
	case <-t.done:
		return t.err, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// try runs a command that does nothing.
func (c *child) try(system string, sandbox protocol.SandboxPolicy, cwd string) *UnconfinedError {
	if sandbox.Mode == protocol.SandboxWorkspaceWrite {
		sandbox.WritableRoots = []string{cwd}
	}
	p := &apptypes.ExecParams{
		Command: []string{"true"}, Cwd: cwd, ProcessID: "codexmcp-trial-" + string(sandbox.Mode),
		TimeoutMS: trialLimit.Milliseconds(), SandboxPolicy: sandboxOf(sandbox),
	}
	var reply apptypes.ExecReply
	begun := time.Now()
	ctx, stop := context.WithTimeout(context.Background(), trialLimit+steerLimit)
	defer stop()
	err := c.app.Call(ctx, apptypes.CallCommandExec, p, &reply)
	took := time.Since(begun)
	c.log.Debug("codex: tried the sandbox", "mode", sandbox.Mode, "took", took, "exit", reply.ExitCode, "error", err)
	said := plain.OneLine(c.redact(reply.Stderr+" "+reply.Stdout), maxSaid)
	if err != nil || reply.ExitCode == 0 || reply.ExitCode == run.TimeoutExitCode || strings.Contains(said, "execvp") {
		return nil // the last one ran: there is no program of that name
	}
	help := helpOther
	if system == "linux" {
		help = helpNamespaces
	}
	if said == "" {
		said = fmt.Sprintf("`true` ended with the exit code %d", reply.ExitCode)
	}
	return &UnconfinedError{Why: said, Help: help}
}

// confined returns an error for a turn in which nothing could run, because Codex's sandbox runs no command and nobody
// is asked about one outside of it. Another turn does not wait for the trial, and says once in a conversation what it
// finds.
func (c *conversation) confined(ctx context.Context, ch *child, r *turn) error {
	now := &c.settings.now
	tries := func() (*UnconfinedError, error) { return ch.tries(ctx, c.engine.system, now.Sandbox, now.Cwd) }
	if now.Policy != protocol.ApprovalNever || c.settings.readOnly { // a review has what it is about in its message
		r.trial.Go(func() {
			failed, _ := tries()
			if failed != nil && c.unconfined.CompareAndSwap(false, true) {
				r.report(protocol.BackgroundEvent{Message: failed.Error() + "; " + OnlyOutside, Remark: true})
			}
		})
		return nil
	}
	failed, err := tries()
	if failed != nil {
		return fmt.Errorf("nothing can run under the approval policy never: %w", failed)
	}
	return err
}

// Confines runs a command that does nothing in Codex's sandbox. The error is an [*UnconfinedError] if Codex can run
// none there.
func (e *Engine) Confines(ctx context.Context) error {
	c, err := e.child(ctx)
	if err != nil {
		return err
	}
	failed, err := c.tries(ctx, e.system, protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, c.home)
	if failed != nil {
		return failed
	}
	return err
}
