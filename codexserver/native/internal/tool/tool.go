package tool

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/hosts"
	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/codexserver/internal/permission"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Call is a model's call of a tool.
type Call = model.Call

// Result is a tool's result for the model.
type Result struct {
	// Output answers the call.
	Output string
	// Items are sent to the model after the outputs of all calls of a response.
	Items []protocol.ResponseItem
	// Unknown reports that there is no such tool. Output says only that.
	Unknown bool
}

// Options are the options of a conversation's tools.
type Options struct {
	// Environ is the environment of commands, NAME=value.
	Environ []string
	// Set are the names of those that the user's configuration gives. A command that a rule lets run outside the sandbox
	// gets them, and of Client what the rule names: it returns the environment without the keys of model providers.
	Set    []string
	Client func() []string
	// Sandbox confines commands.
	Sandbox Sandbox
	// Processes runs commands. Leftovers keeps the processes that commands without a sandbox
	// leave running. See [run.Spec].
	Processes Runner
	Leftovers *run.Leftovers
	// Timeout ends a command for which the model requests no other. Default:
	// [run.DefaultTimeout].
	Timeout time.Duration
	// Shell is the user's shell, such as "/bin/zsh", for commands that run with the user's
	// profile. With "" they run without it.
	Shell string
	// Strict uses the strict rules for commands that are known to be safe.
	Strict bool
	// Ask lists beginnings of commands that a person is asked about each time.
	Ask [][]string
	// LocalShell offers the model's own shell tool instead of ours. PatchTool offers the
	// patch tool, PlanTool the plan tool, and ImageTool the image tool.
	LocalShell, PatchTool, PlanTool, ImageTool bool
	// FileTools offers tools that read, list, search, edit and write files.
	FileTools bool
	// Hosts connects commands in workspace-write to the hosts that are allowed. Nil leaves them without a network.
	Hosts *hosts.Proxy
	// Domain returns whether the user's profile lets commands reach a host, and whether it says so.
	Domain func(host string) (allowed, known bool)
	// HostsTip is a sentence for questions about leaving workspace-write for the network, if there could be Hosts.
	HostsTip string
	// ReadOnly refuses every patch under all policies.
	ReadOnly bool
	// Programs knows the folders that commands can write, also those of other conversations.
	Programs *box.Programs
}

// Runner runs commands: a [run.Starter], or what stands for one.
type Runner interface {
	// Run runs a command until it ends. See [run.Starter.Run].
	Run(ctx context.Context, spec run.Spec, onOutput func(protocol.OutputStream, []byte)) (run.Result, error)
}

// Sandbox confines commands and patches to what a sandbox policy allows. [Confine] returns
// one.
type Sandbox interface {
	// Confine prepares a confinement for commands in cwd with the environment env. The
	// error wraps [box.ErrUnavailable] when this system cannot enforce the policy.
	// After any other error nothing may run.
	Confine(policy protocol.SandboxPolicy, cwd string, env []string) (Confinement, error)
	// Roots returns the folders that the policy leaves writable, whether or not this
	// system can enforce it.
	Roots(policy protocol.SandboxPolicy, cwd string, env []string) (box.Roots, error)
	// Permitted returns what the user's profile says for a conversation in cwd, nil if it restricts nothing.
	Permitted(cwd string, env []string) *permission.Set
	// Beyond confines a command that may leave the sandbox, but not read what the profile denies. It is nil if that is
	// nothing.
	Beyond(cwd string, env []string) (Confinement, error)
	// Protected returns the paths below the roots that a patch may change only if the user
	// approves it.
	Protected(roots []string) []string
	// Close removes what commands wrote into caches. They have ended.
	Close() error
}

// Confinement is a sandbox for some commands.
type Confinement interface {
	run.Confinement
	// Environ returns the variables to add to the environment of a confined command.
	Environ() []string
	// Notes are sentences about folders that the policy names and that are not writable.
	Notes() []string
	// Do runs f confined in this process. The error wraps [box.ErrUnavailable] if f
	// cannot be confined and did not run.
	Do(f func() error) error
	// Read runs f, which only reads, so that it reads nothing that a command could not
	// read. The error wraps [box.ErrUnavailable] if f did not run for that reason.
	Read(f func() error) error
	// Denied says why a command failed, if that was because of the confinement. See [box.Denial].
	Denied(run.Result) string
	// Forbidden says which file a command failed to read that the user's profile denies, "" if none.
	Forbidden(run.Result) string
	// ReadOnly reports whether a command can change no file.
	ReadOnly() bool
	// Hosts returns the confinement for a command with [Options.Hosts], or nil. See [box.Confinement.Hosts].
	Hosts() *box.Hosts
}

// Confine returns a conversation's sandbox for its tools.
func Confine(s *box.Sandbox) Sandbox { return confiner{s} }

type confiner struct{ *box.Sandbox }

func (c confiner) Confine(policy protocol.SandboxPolicy, cwd string, env []string) (Confinement, error) {
	confinement, err := c.Sandbox.Confine(policy, cwd, env)
	if err != nil {
		return nil, err
	}
	return confinement, nil
}

func (c confiner) Beyond(cwd string, env []string) (Confinement, error) {
	confinement, err := c.Sandbox.Beyond(cwd, env)
	if confinement == nil || err != nil {
		return nil, err
	}
	return confinement, nil
}

// permitted returns what the user's profile says, nil if it restricts nothing.
func (t *Turn) permitted() *permission.Set {
	return t.box.options.Sandbox.Permitted(t.Cwd, t.box.options.Environ)
}

// Roots returns the folders that the policy leaves writable for commands in cwd.
func (b *Toolbox) Roots(policy protocol.SandboxPolicy, cwd string) (box.Roots, error) {
	return b.options.Sandbox.Roots(policy, cwd, b.options.Environ)
}

// Toolbox is the tools of one conversation, for one goroutine at a time: that of its turn.
type Toolbox struct {
	options  Options
	line     []string            // see [run.LineShell]
	session  map[string]bool     // commands approved for the session
	reached  sync.Map            // hosts approved for the session; questions may be answered at the same time
	offline  bool                // the last command in the sandbox failed without a network
	folders  map[string]string   // where each working folder led when it was first used
	informed map[string]bool     // messages about the sandbox that were sent to the user
	seen     map[string][32]byte // files that the model knows, and the SHA-256 of their content then
}

// New makes a conversation's tools.
func New(o Options) *Toolbox {
	return &Toolbox{options: o, line: run.LineShell(runtime.GOOS, o.Environ), session: map[string]bool{},
		folders: map[string]string{}, informed: map[string]bool{}, seen: map[string][32]byte{}}
}

// kind is a tool.
type kind struct {
	model.Tool
	offered bool
	call    func(t *Turn, ctx context.Context, call Call) (Result, error)
}

// kinds returns the tools that a model may call, in the order in which they are offered.
func (b *Toolbox) kinds() []kind {
	o := &b.options
	kinds := []kind{{b.shellDefinition(), true, (*Turn).shell}}
	if o.FileTools {
		kinds = append(kinds, fileKinds...)
	}
	return append(kinds,
		kind{planDefinition, o.PlanTool, (*Turn).updatePlan}, kind{patchDefinition, o.PatchTool, (*Turn).applyPatch},
		kind{imageDefinition, o.ImageTool, (*Turn).viewImage})
}

// Offer returns the definitions of the tools for the model, if it is another one than the options are
// for, only those that every model can call.
func (b *Toolbox) Offer(other bool) (tools []model.Tool) {
	for _, k := range b.kinds() {
		switch {
		case k.Name == "shell" && b.options.LocalShell && !other:
			tools = append(tools, model.Tool{Type: "local_shell"})
		case k.offered:
			tools = append(tools, k.Tool)
		}
	}
	return tools
}

// Context has the settings of one turn.
type Context struct {
	// Cwd is the absolute working folder.
	Cwd            string
	ApprovalPolicy protocol.ApprovalPolicy
	SandboxPolicy  protocol.SandboxPolicy
	// Host receives the events and the questions.
	Host engine.Host
	// Acting, unless nil, is called before a call does anything that the model must
	// remember later. With an error the call does nothing, and the error ends the turn.
	Acting func() error
}

// Close ends the sandbox of the conversation, whose commands have ended.
func (b *Toolbox) Close() error { return b.options.Sandbox.Close() }

// Turn has the tools for one turn.
type Turn struct {
	Context
	box     *Toolbox
	diff    *patch.Diff
	ran     bool   // a command
	stopped string // why the confinement of the last one stopped it, or ""
}

// Turn begins a turn.
func (b *Toolbox) Turn(c Context) *Turn {
	_, _ = b.folder(c.Cwd) // records the first use; a patch reports the error
	b.options.Programs.Given(c.Cwd)
	if c.Acting == nil {
		c.Acting = func() error { return nil }
	}
	return &Turn{Context: c, box: b, diff: &patch.Diff{}}
}

// Call runs a call and returns its result. An error ends the turn. It is an
// [*engine.AbortError] or the context's cause.
func (t *Turn) Call(ctx context.Context, call Call) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	name := call.Name
	if call.Shell != nil || name == "container.exec" {
		name = "shell"
	}
	for _, k := range t.box.kinds() {
		known := k.offered || name == "apply_patch" // which models also call that are not offered it
		if k.Name == name && known && (!call.Custom || name == "apply_patch") {
			return k.call(t, ctx, call)
		}
	}
	return Result{Output: "unsupported call: " + call.Name, Unknown: true}, nil
}

// UnifiedDiff returns the changes of all patches of the turn in git's format, or "".
func (t *Turn) UnifiedDiff() string {
	if t.diff.Empty() {
		return ""
	}
	return t.diff.Text(git.Root(t.Cwd))
}

// confineTo returns the sandbox for a policy. If tells is true, it informs the user once if the
// sandbox is missing, or about folders that are not writable.
func (t *Turn) confineTo(p protocol.SandboxPolicy, tells bool) (c Confinement, err error) {
	c, err = t.box.options.Sandbox.Confine(p, t.Cwd, t.box.options.Environ)
	switch {
	case err != nil && tells:
		t.inform(fmt.Sprintf("commands cannot be confined to the sandbox mode %s: %v", p.Mode, err))
	case err == nil && tells:
		for _, note := range c.Notes() {
			t.inform(note)
		}
	}
	return c, err
}

// inform sends the user a message about the sandbox, once in the conversation.
func (t *Turn) inform(message string) {
	if !t.box.informed[message] {
		t.box.informed[message] = true
		t.Host.Emit(protocol.BackgroundEvent{Message: message})
	}
}

// refuse reports what the turn does not do and nobody was asked about. It returns the reason, which
// the model gets.
func (t *Turn) refuse(r protocol.Refused) string {
	if r.Cwd == "" {
		r.Cwd = t.Cwd
	}
	t.Host.Emit(protocol.BackgroundEvent{Refused: &r})
	return r.Reason
}

// roots returns the folders that the turn's policy leaves writable.
func (t *Turn) roots() (box.Roots, error) { return t.box.Roots(t.SandboxPolicy, t.Cwd) }

// Forget removes all approvals for the session.
func (b *Toolbox) Forget() {
	clear(b.session)
	b.reached.Clear()
}

func readOutcome(what string, out elicit.Outcome) (refusal string, err error) {
	switch out.Decision {
	case elicit.Approved, elicit.ApprovedForSession:
		return "", nil
	case elicit.Abort:
		return "", &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: errors.New(out.ForModel())}
	}
	return fmt.Sprintf("%s: %s", what, out.ForModel()), nil
}
