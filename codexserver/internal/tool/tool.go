package tool

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/internal/command"
	"github.com/codexmcp/codexmcp/codexserver/internal/keeper"
	"github.com/codexmcp/codexmcp/codexserver/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Call is a model's call of a tool.
type Call struct {
	// ID is the model's.
	ID string
	// Name is the tool's.
	Name string
	// Arguments is a JSON text or, when Custom is true, free text.
	Arguments string
	Custom    bool
	// Shell is the action of a model with a shell tool of its own; nil otherwise.
	Shell *protocol.LocalShellAction
}

// Result is what a tool has for the model.
type Result struct {
	// Output answers the call.
	Output string
	// Items follow the outputs of all the calls of a response.
	Items []protocol.ResponseItem
}

// Options say what the tools of a conversation work with.
type Options struct {
	// Environ is the environment of commands, NAME=value.
	Environ []string
	// Sandbox confines commands; nil when there is none.
	Sandbox Sandbox
	// Keepers keep the processes of commands, and Leftovers what commands
	// without a sandbox leave running; see [command.Spec].
	Keepers   *keeper.Pool
	Leftovers *command.Leftovers
	// Shell is the user's shell, such as "/bin/zsh", when commands are to run with
	// the user's profile; "" runs them as they are.
	Shell string
	// Strict asks for every command that is not safe by the strict rules.
	Strict bool
	// LocalShell offers the model's own shell tool instead of ours, PatchTool
	// the patch tool, PlanTool the plan tool, ImageTool the image tool.
	LocalShell, PatchTool, PlanTool, ImageTool bool
}

// Sandbox confines what runs to what a sandbox policy allows. Package sandbox
// has one: see [Confine].
type Sandbox interface {
	// Confine prepares a confinement for what runs in cwd with the environment
	// env. Its error wraps [sandbox.ErrUnavailable] when this system cannot
	// enforce the policy.
	Confine(policy protocol.SandboxPolicy, cwd string, env []string) (Confinement, error)
	// Protected are the paths that no patch changes unasked, although they lie
	// below the writable roots.
	Protected(roots []string) []string
}

// Confinement is a sandbox for some commands.
type Confinement interface {
	command.Starter
	// Environ is to be added to the environment of what runs in it.
	Environ() []string
	// Do runs f confined, in this process.
	Do(f func() error) error
	// Denied says whether the confinement is what made a command fail.
	Denied(command.Result) bool
}

// Confine makes a conversation's sandbox usable by its tools.
func Confine(s *sandbox.Sandbox) Sandbox { return confiner{s} }

type confiner struct{ *sandbox.Sandbox }

func (c confiner) Confine(policy protocol.SandboxPolicy, cwd string, env []string) (Confinement, error) {
	confinement, err := c.Sandbox.Confine(policy, cwd, env)
	if err != nil {
		return nil, err
	}
	return confinement, nil
}

// Toolbox is the tools of one conversation. It is safe for concurrent use.
type Toolbox struct {
	options Options

	unconfined sync.Once // the user is told

	mu       sync.Mutex
	approved map[string]bool // commands, with their folder, approved for the session
}

// New makes a conversation's tools.
func New(o Options) *Toolbox { return &Toolbox{options: o, approved: map[string]bool{}} }

// Offer are the definitions that the model is sent.
func (b *Toolbox) Offer() []model.Tool {
	tools := []model.Tool{shellDefinition}
	if b.options.LocalShell {
		tools = []model.Tool{{Type: "local_shell"}}
	}
	if b.options.PlanTool {
		tools = append(tools, planDefinition)
	}
	if b.options.PatchTool {
		tools = append(tools, patchDefinition)
	}
	if b.options.ImageTool {
		tools = append(tools, imageDefinition)
	}
	return tools
}

// Context is what holds for the calls of one turn.
type Context struct {
	// Cwd is the absolute working folder.
	Cwd            string
	ApprovalPolicy protocol.ApprovalPolicy
	SandboxPolicy  protocol.SandboxPolicy
	// Host is told and asked.
	Host Host
	// Acting is called before a call does anything that the model must know of
	// later; nil is fine. Calls side by side call it at the same time.
	Acting func()
}

// Host is what a tool may ask of the server, as engine.Host says.
type Host interface {
	Emit(protocol.EventMsg)
	ApproveExec(context.Context, protocol.ExecApprovalRequest) elicit.Outcome
	ApprovePatch(context.Context, protocol.PatchApprovalRequest) elicit.Outcome
}

// AbortError says that the answer to an approval ends the turn.
type AbortError struct {
	Outcome elicit.Outcome
}

// Error implements error.
func (e *AbortError) Error() string { return e.Outcome.ForModel() }

// Turn is the tools during one turn.
type Turn struct {
	Context
	box  *Toolbox
	diff *patch.Diff
}

// Turn begins a turn.
func (b *Toolbox) Turn(c Context) *Turn {
	return &Turn{Context: c, box: b, diff: patch.NewDiff(c.Cwd)}
}

// Call runs a call to its end. The error ends the turn: an [*AbortError],
// or the context's cause.
func (t *Turn) Call(ctx context.Context, call Call) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	switch {
	case call.Shell != nil:
		return t.localShell(ctx, call)
	case call.Name == "apply_patch":
		return t.applyPatch(ctx, call)
	case call.Custom:
	case call.Name == "shell", call.Name == "container.exec":
		return t.shell(ctx, call)
	case call.Name == "update_plan":
		return t.updatePlan(call), nil
	case call.Name == "view_image":
		return t.viewImage(call), nil
	}
	return Result{Output: "unsupported call: " + call.Name}, nil
}

// Independent says that a call changes nothing and asks nobody, so that it may
// run beside its neighbours of which the same is true.
func (t *Turn) Independent(call Call) bool {
	if call.Custom || call.Name != "shell" && call.Name != "container.exec" && call.Shell == nil {
		return call.Name == "view_image" && !call.Custom
	}
	args, err := shellArgumentsOf(call)
	return err == nil && !args.escalated() && policy.KnownSafeStrict(args.Command)
}

// UnifiedDiff is all that the patches of the turn have changed so far, in git's
// style; "" when they have changed nothing.
func (t *Turn) UnifiedDiff() string { return t.diff.String() }

func (t *Turn) acting() {
	if t.Acting != nil {
		t.Acting()
	}
}

// confine gives the sandbox for what runs in the turn. The first time that
// there is none, the user is told.
func (t *Turn) confine() (c Confinement, err error) {
	if err = sandbox.ErrUnavailable; t.box.options.Sandbox != nil {
		c, err = t.box.options.Sandbox.Confine(t.SandboxPolicy, t.Cwd, t.box.options.Environ)
	}
	if err != nil {
		t.box.unconfined.Do(func() {
			t.Host.Emit(protocol.BackgroundEvent{Message: fmt.Sprintf("commands cannot be confined to the sandbox mode %s: %v", t.SandboxPolicy.Mode, err)})
		})
	}
	return c, err
}

// isApproved and approve remember what the user approved for the session.
func (b *Toolbox) isApproved(argv []string, dir string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.approved[approvalKey(argv, dir)]
}

func (b *Toolbox) approve(argv []string, dir string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.approved[approvalKey(argv, dir)] = true
}

func approvalKey(argv []string, dir string) string {
	return dir + "\x00" + strings.Join(argv, "\x00")
}

// askExec asks whether a command may run. A refusal, not empty, is for the model.
func (t *Turn) askExec(ctx context.Context, req protocol.ExecApprovalRequest) (refusal string, err error) {
	out := t.Host.ApproveExec(ctx, req)
	if out.Decision == elicit.ApprovedForSession {
		t.box.approve(req.Command, req.Cwd)
	}
	return readOutcome("the command was not run", out)
}

func readOutcome(what string, out elicit.Outcome) (refusal string, err error) {
	switch out.Decision {
	case elicit.Approved, elicit.ApprovedForSession:
		return "", nil
	case elicit.Abort:
		return "", &AbortError{Outcome: out}
	}
	return fmt.Sprintf("%s: %s", what, out.ForModel()), nil
}
