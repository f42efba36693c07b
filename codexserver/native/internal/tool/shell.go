package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/summary"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// shellDefinition returns the definition of the shell tool.
func (b *Toolbox) shellDefinition() model.Tool {
	line := fmt.Sprintf(`[\"%s\",\"%s\",SCRIPT]`, b.line[0], b.line[1])
	if b.line[0] != "bash" {
		line += ", because there is no bash"
	}
	return model.Tool{
		Name:        "shell",
		Description: "Runs one program in the working folder and returns its output and exit code. It gets no input and no terminal.",
		Parameters: fmt.Appendf(nil, `{"type":"object","properties":{
"command":{"type":"array","items":{"type":"string"},"description":"The program and its arguments; for shell syntax %s"},
"workdir":{"type":"string","description":"Folder to run in, relative to the working folder"},
"timeout_ms":{"type":"number","description":"Milliseconds after which it is stopped, %d by default, at most %d"},
"with_escalated_permissions":{"type":"boolean","description":"True to ask the user to let it run outside the sandbox"},
"justification":{"type":"string","description":"With with_escalated_permissions: one sentence for the user that says why"}
},"required":["command"],"additionalProperties":false}`, line, b.options.timeout().Milliseconds(), b.options.maxTimeout().Milliseconds()),
	}
}

// maxTimeout is the longest timeout that a model may request, unless that of the options is
// longer.
const maxTimeout = time.Hour

func (o *Options) timeout() time.Duration { return cmp.Or(o.Timeout, run.DefaultTimeout) }

func (o *Options) maxTimeout() time.Duration { return max(o.timeout(), maxTimeout) }

type shellArguments struct {
	Command   []string `json:"-"`
	Workdir   string   `json:"workdir"`
	TimeoutMS *float64 `json:"timeout_ms"`
	// Timeout is the name that some models use for TimeoutMS, as Codex lets them.
	Timeout       *float64 `json:"timeout"`
	Escalated     *bool    `json:"with_escalated_permissions"`
	Justification string   `json:"justification"`
}

// command is the program and its arguments, or a line for the shell.
type command struct {
	words []string
	line  string
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom]. Many models write a line in place of a list.
func (c *command) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != jsontext.KindString {
		return json.UnmarshalDecode(d, &c.words)
	}
	return json.UnmarshalDecode(d, &c.line)
}

// LineShell returns the beginning of the list that runs a line.
func (b *Toolbox) LineShell() []string { return b.line }

// lineShell finds the shell for lines: bash, or sh where there is none in the PATH of commands.
func lineShell(environ []string) []string {
	if _, err := run.LookPath("bash", "/", environ); err != nil {
		if _, err := run.LookPath("sh", "/", environ); err == nil {
			return []string{"sh", "-c"}
		}
	}
	return []string{"bash", "-lc"}
}

func (a shellArguments) escalated() bool { return a.Escalated != nil && *a.Escalated }

// shellArgumentsOf reads the arguments of either shell tool. A line becomes the list that runs it, before
// anything is decided.
func (b *Toolbox) shellArgumentsOf(call Call) (shellArguments, error) {
	var wire struct {
		shellArguments
		Command command `json:"command"`
	}
	a := &wire.shellArguments
	if s := call.Shell; s != nil {
		a.Command = s.Command
		if s.TimeoutMS != nil {
			ms := float64(*s.TimeoutMS)
			a.TimeoutMS = &ms
		}
		if s.WorkingDirectory != nil {
			a.Workdir = *s.WorkingDirectory
		}
	} else if err := decodeArguments(call.Arguments, &wire); err != nil {
		return *a, err
	} else if a.Command = wire.Command.words; strings.TrimSpace(wire.Command.line) != "" {
		a.Command = append(slices.Clone(b.line), wire.Command.line)
	}
	for i, word := range a.Command {
		if strings.Contains(word, "\x00") {
			return *a, &argumentError{fmt.Sprintf("command.%d", i), "has a NUL byte"}
		}
	}
	switch {
	case len(a.Command) == 0:
		return *a, &argumentError{"command", "want at least one word"}
	case strings.Contains(a.Workdir, "\x00"):
		return *a, &argumentError{"workdir", "has a NUL byte"}
	case a.TimeoutMS != nil && !(*a.TimeoutMS > 0):
		return *a, &argumentError{"timeout_ms", "want more than 0"}
	case a.Timeout != nil && !(*a.Timeout > 0):
		return *a, &argumentError{"timeout", "want more than 0"}
	}
	a.TimeoutMS = cmp.Or(a.TimeoutMS, a.Timeout)
	return *a, nil
}

// timeout returns how long the command may run. lowered is true if the model has asked for
// more.
func (r attempt) timeout() (timeout time.Duration, lowered bool) {
	o := &r.turn.box.options
	if r.TimeoutMS == nil {
		return o.timeout(), false
	}
	most := float64(o.maxTimeout())
	asked := *r.TimeoutMS * float64(time.Millisecond)
	return max(time.Duration(min(asked, most)), 1), asked > most
}

// attempt is the run of one command.
type attempt struct {
	turn *Turn
	id   string
	// dir is the folder, with links resolved if possible. named is the folder's path in the
	// call.
	dir, named string
	shellArguments
	// ruled is how the command runs outside the sandbox if a rule lets it, nil if a person does.
	ruled *ruled
}

// ruled is a command as a rule lets it run outside the sandbox.
type ruled struct{ argv, env []string }

// run reads a call of either shell tool.
func (t *Turn) run(call Call) (attempt, error) {
	args, err := t.box.shellArgumentsOf(call)
	if err != nil {
		return attempt{}, err
	}
	dir := t.Cwd
	if args.Workdir != "" {
		dir = args.Workdir
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(t.Cwd, dir)
		}
	}
	if strings.Contains(dir, "\x00") {
		return attempt{}, &argumentError{"workdir", "has a NUL byte"}
	}
	r := attempt{turn: t, id: call.ID, dir: dir, named: dir, shellArguments: args}
	// The user sees and approves the real folder, not a link to it.
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		r.dir = real
	}
	return r, nil
}

// shell runs a command. If the command would only apply a patch, shell applies it instead.
func (t *Turn) shell(ctx context.Context, call Call) (Result, error) {
	r, err := t.run(call)
	if err != nil {
		return Result{Output: err.Error()}, nil
	}
	if inv, ok := patch.Recognize(r.Command); ok {
		return t.patch(ctx, call.ID, inv.Text, inv.In(r.named))
	}
	output, err := r.decide(ctx)
	return Result{Output: output}, err
}

// person reports whether a rule wants a person to be asked about the command each time.
func (r attempt) person() bool { return decide.Mentions(r.turn.box.options.Ask, r.Command) }

// judge has the policy decide about the command, and prepares its sandbox.
func (r attempt) judge() (decide.Verdict, Confinement) {
	return r.turn.judge(decide.Input{
		Strict:          r.turn.box.options.Strict,
		Command:         r.Command,
		Escalated:       r.escalated(),
		SessionApproved: r.turn.box.approved(r.key()) && !r.person(),
	})
}

// judge has the policy decide about a command or code of this program, and prepares its sandbox. It refuses
// everything, even what was approved, if a writable folder was replaced: the question would name another
// folder.
func (t *Turn) judge(in decide.Input) (decide.Verdict, Confinement) {
	if _, err := t.roots(); err != nil {
		return notRun(err), nil
	}
	in.Policy, in.Sandbox, in.SandboxAvailable = t.ApprovalPolicy, t.SandboxPolicy.Mode, true
	verdict, p := decide.Exec(in), t.SandboxPolicy
	asks := verdict.Action == decide.Ask
	switch {
	case verdict.Action == decide.Run || verdict.Action == decide.Refuse || asks && !verdict.Confinable:
		return verdict, nil
	case verdict.Action == decide.RunReadOnly || in.Reads:
		p = protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}
	case asks && p.Mode == protocol.SandboxDangerFullAccess:
		// A rule lets the command run where it can write the working folder, also in a
		// conversation without a sandbox.
		p.Mode, p.NetworkAccess = protocol.SandboxWorkspaceWrite, false
	}
	c, err := t.confineTo(p, !asks) // no answer may need the sandbox
	if err == nil && in.Reads {
		err = c.Read(func() error { return nil })
	}
	switch {
	case err == nil:
		return verdict, c
	case !errors.Is(err, box.ErrUnavailable): // unexpected, so nothing may run
		return notRun(err), nil
	}
	in.SandboxAvailable = false
	return decide.Exec(in), nil
}

func notRun(err error) decide.Verdict {
	return decide.Verdict{Action: decide.Refuse, Reason: fmt.Sprintf("not run: %v", err)}
}

// key identifies an approval for the session. It is equal only for equal words in the same
// folder and the same sandbox, whatever characters they have.
func (r attempt) key() string {
	return fmt.Sprintf("%q %q %#v", r.dir, r.Command, r.turn.SandboxPolicy)
}

// decide has the policy decide about the command, and then runs it, asks or refuses.
func (r attempt) decide(ctx context.Context) (output string, err error) {
	verdict, c := r.judge()
	action := verdict.Action
	switch {
	case action == decide.Refuse:
		return r.turn.refuse(protocol.Refused{Command: r.Command, Cwd: r.dir, Reason: verdict.Reason, CallID: r.id}), nil
	case action == decide.Ask:
		return r.askAndRun(ctx, cmp.Or(r.Justification, verdict.Reason), c)
	case r.person():
		if a, err := r.ask(ctx, ruleAsks(action), action, false); err != nil || a.refusal != "" {
			return a.refusal, err
		}
	}
	after := decide.AfterDenial(r.turn.ApprovalPolicy)
	switch {
	case action == decide.Run:
		return r.free(ctx)
	case c == nil:
		return "", fmt.Errorf("%v is not possible for a command", action)
	case action == decide.RunReadOnly:
		after = decide.Verdict{Reason: "it ran in the read-only sandbox without network, which stopped it; the user is asked about commands that are not known to be safe"}
	case r.turn.box.approved(r.key()):
		after = decide.Verdict{Action: decide.Ask, Reason: stoppedInside}
	}
	return r.confined(ctx, c, after)
}

// ruleAsks returns the reason of a question that a rule wants about what the policy would let run.
func ruleAsks(a decide.Action) string {
	switch a {
	case decide.RunSandboxed:
		return "a rule of the user asks about this command; if approved, it runs in the sandbox"
	case decide.RunReadOnly:
		return "a rule of the user asks about this command; if approved, it runs in the read-only sandbox"
	}
	return "a rule of the user asks about this command"
}

// askAndRun asks whether the command may run, and runs it in the sandbox c or outside. Without c it
// may run only outside.
func (r attempt) askAndRun(ctx context.Context, reason string, c Confinement) (output string, err error) {
	a, err := r.ask(ctx, reason, decide.Ask, c != nil)
	switch {
	case err != nil || a.refusal != "":
		return a.refusal, err
	case a.confined:
		return r.confined(ctx, c, decide.Verdict{Action: decide.Ask, Reason: stoppedInside})
	}
	r.ruled = a.ruled
	return r.free(ctx)
}

// stoppedInside is the reason of a question about a command that a rule, or an approval for the
// session, allowed in the sandbox.
const stoppedInside = "the sandbox stopped the command, which was allowed only inside; retry without sandbox?"

// answer is the answer to a question about a command.
type answer struct {
	refusal  string // for the model; "" if the command may run
	confined bool   // it may run only in the sandbox
	ruled    *ruled // how it runs outside if a rule lets it
}

// ask asks whether the command may run. Then is what an approval allows, where Ask means outside the
// sandbox.
func (r attempt) ask(ctx context.Context, reason string, then decide.Action, confinable bool) (a answer, err error) {
	req := r.request(reason, confinable)
	if then == decide.RunSandboxed || then == decide.RunReadOnly {
		req.LeavesSandbox, req.NoSandbox = false, false
	}
	shown, missing := run.OpenFolder(r.dir)
	if missing == nil {
		defer shown.Close() // while it is open, no other folder gets its identity
	}
	out := r.turn.Host.ApproveExec(ctx, req)
	a.confined = out.Confined
	a.refusal, err = readOutcome("the command was not run", out)
	switch {
	case err != nil || a.refusal != "":
	case missing == nil && !isAt(shown, r.dir):
		a.refusal = fmt.Sprintf("not run: the folder %s was replaced before the user answered", r.dir)
	case out.Confined && !confinable:
		a.refusal = "not run: it may run only in the sandbox, which is not possible"
	case out.Ruled && !out.Confined:
		if a.ruled, err = r.outside(); err != nil {
			reason := fmt.Sprintf("not run: a rule lets it run outside the sandbox, but %v", err)
			a.refusal, err = r.turn.refuse(protocol.Refused{Command: r.Command, Cwd: r.dir, Reason: reason, CallID: r.id}), nil
		}
	case out.Decision == elicit.ApprovedForSession && !req.Once && !out.Confined:
		r.turn.box.approve(r.key())
	}
	return a, err
}

// outside returns how the command runs if a rule lets it run outside the sandbox.
func (r attempt) outside() (*ruled, error) {
	t := r.turn
	roots, err := t.roots()
	if err != nil {
		return nil, err
	}
	o := &t.box.options
	folders := roots.Paths
	if o.Writable != nil {
		folders = append(folders, o.Writable()...)
	}
	argv, env, err := o.Programs.Outside(r.Command, r.dir, o.Environ, folders...)
	if err != nil {
		return nil, err
	}
	return &ruled{argv, env}, nil
}

// request returns the question about the command.
func (r attempt) request(reason string, confinable bool) protocol.ExecApprovalRequest {
	req := protocol.ExecApprovalRequest{
		CallID: r.id, Command: r.Command, Cwd: r.dir,
		Reason: reason, FromEngine: reason != r.Justification,
		LeavesSandbox: r.turn.SandboxPolicy.Mode != protocol.SandboxDangerFullAccess,
		NoSandbox:     r.turn.SandboxPolicy.Mode == protocol.SandboxDangerFullAccess,
		Confinable:    confinable,
	}
	req.Program = r.program()
	// Where the sandbox cannot hold the command, an approval that lasts would let it out again.
	req.Once = r.person() || req.LeavesSandbox && !confinable
	return req
}

// program returns the path of a program that the command would start, although commands may write it. The
// folders do not depend on the sandbox mode: a command of another turn, or a patch, may have written there.
func (r attempt) program() string {
	t := r.turn
	p := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, WritableRoots: t.SandboxPolicy.WritableRoots}
	env := t.box.options.Environ
	folders := box.AskedRoots(p, t.Cwd, env)
	if others := t.box.options.Writable; others != nil {
		folders = append(folders, others()...)
	}
	return box.Planted(r.Command, r.dir, env, folders)
}

// isAt reports whether an open folder is at a path without links.
func isAt(folder *os.File, path string) bool {
	other, err := run.OpenFolder(path)
	if err != nil {
		return false
	}
	defer other.Close()
	a, errA := folder.Stat()
	b, errB := other.Stat()
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// free runs the command without a sandbox.
func (r attempt) free(ctx context.Context) (output string, err error) {
	_, output, err = r.exec(ctx, nil)
	return output, err
}

// confined runs the command in the sandbox. If the sandbox stops it and after is
// [decide.Ask], confined asks the user to run the command again without the sandbox.
func (r attempt) confined(ctx context.Context, c Confinement, after decide.Verdict) (output string, err error) {
	res, output, err := r.exec(ctx, c)
	if err != nil || res == nil || !c.Denied(*res) {
		return output, err
	}
	if after.Action != decide.Ask {
		words := after.Reason
		if r.turn.ApprovalPolicy == protocol.ApprovalOnRequest {
			words += "; with_escalated_permissions asks the user to run it outside"
		}
		note(res, words)
		return run.ModelOutput(*res), nil
	}
	emit := r.turn.Host.Emit
	emit(protocol.BackgroundEvent{Message: fmt.Sprintf("the sandbox stopped the command, exit code %d: %s", res.ExitCode, run.FormatOutput(res.Stderr))})
	a, err := r.ask(ctx, after.Reason, decide.Ask, false)
	if err != nil || a.refusal != "" {
		return a.refusal, err
	}
	emit(protocol.BackgroundEvent{Message: "retrying command without sandbox"})
	r.ruled = a.ruled
	return r.free(ctx)
}

// noProgram is what shells say, also if a command behind it ran all the same.
var noProgram = lazyregexp.Regexp{Text: `apply_patch: (?:command )?not found`}

// note adds a note for the model to the output.
func note(res *run.Result, words string) { res.Aggregated += "\n(" + words + ")\n" }

// exec runs the command and emits its events. The result is nil if the command did not
// start.
func (r attempt) exec(ctx context.Context, c Confinement) (*run.Result, string, error) {
	t := r.turn
	o := t.box.options
	timeout, lowered := r.timeout()
	spec := run.Spec{Argv: r.withProfile(), Dir: r.dir, Env: o.Environ, Leftovers: o.Leftovers, Timeout: timeout}
	if c != nil {
		spec.Confinement, spec.Leftovers = c, nil
		spec.Env = append(spec.Env[:len(spec.Env):len(spec.Env)], c.Environ()...)
	}
	if r.ruled != nil {
		spec.Argv, spec.Env = r.ruled.argv, r.ruled.env
	}
	if err := t.acting(); err != nil {
		return nil, "", err
	}
	t.Host.Emit(protocol.ExecCommandBegin{CallID: r.id, Command: r.Command, Cwd: r.dir, ParsedCmd: summary.Of(r.Command)})
	spec.Exact = c == nil // an approval is for this folder
	res, output, err := r.process(ctx, spec)
	if res != nil {
		most := o.maxTimeout()
		switch {
		case (res.ExitCode == 127 || noProgram.Get().MatchString(res.Aggregated)) && slices.ContainsFunc(r.Command, func(word string) bool { return strings.Contains(word, "apply_patch") }):
			note(res, `apply_patch is no program, and the patch was not applied: call it alone, as ["apply_patch", PATCH]`)
		case lowered:
			note(res, fmt.Sprintf("timeout_ms was lowered to %d, the most that is allowed", most.Milliseconds()))
		case res.TimedOut && timeout < most:
			note(res, fmt.Sprintf("timeout_ms can be up to %d", most.Milliseconds()))
		}
		output = run.ModelOutput(*res)
	}
	return res, output, err
}

// process runs the command until it ends.
func (r attempt) process(ctx context.Context, spec run.Spec) (*run.Result, string, error) {
	t := r.turn
	res, err := t.box.options.Processes.Run(ctx, spec, func(s protocol.OutputStream, chunk []byte) {
		t.Host.Emit(protocol.ExecCommandOutputDelta{CallID: r.id, Stream: s, Chunk: chunk})
	})
	var start *run.StartError
	if errors.As(err, &start) {
		text := startText(start)
		res = run.Result{Stderr: text, Aggregated: text, ExitCode: -1}
	} else if err != nil {
		return nil, "", err
	}
	t.Host.Emit(protocol.ExecCommandEnd{
		CallID: r.id, Stdout: res.Stdout, Stderr: res.Stderr, AggregatedOutput: res.Aggregated,
		ExitCode: res.ExitCode, Duration: protocol.Duration(res.Duration), FormattedOutput: res.Formatted(),
		Omitted: res.Omitted,
	})
	if start != nil {
		return nil, "execution error: " + start.Error(), nil
	}
	return &res, run.ModelOutput(res), nil
}

// withProfile returns the command to start: the command itself, or the user's shell, which
// reads its profile and then executes the command.
func (r attempt) withProfile() []string {
	shell := r.turn.box.options.Shell
	if shell == "" {
		return r.Command
	}
	return append([]string{shell, "-lc", `exec "$@"`, shell}, r.Command...)
}

// startText returns the reason in the form that clients know, with the system's words and
// number.
func startText(err *run.StartError) string {
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
