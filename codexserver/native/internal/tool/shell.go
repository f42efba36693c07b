package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/summary"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// shellDefinition returns the definition of the shell tool.
func (b *Toolbox) shellDefinition() model.Tool {
	line := `[\"` + strings.Join(b.line, `\",\"`) + `\",SCRIPT]`
	if b.line[0] == "sh" {
		line += ", because there is no bash"
	}
	description := "Runs one program in the working folder and returns its output and exit code. It gets no input " +
		"and no terminal. What it starts in the sandbox ends with it: start a server and ask it in one command."
	if b.options.Hosts != nil {
		description += " With the sandbox mode workspace-write, programs reach hosts by HTTPS if the user allows " +
			"each of them: leave the sandbox for nothing that needs only that."
	}
	return model.Tool{
		Name:        "shell",
		Description: description,
		Parameters: fmt.Appendf(nil, `{"type":"object","properties":{
"command":{"type":"array","items":{"type":"string"},"description":"The program and its arguments; for shell syntax %s"},
"workdir":{"type":"string","description":"Folder to run in, relative to the working folder"},
"timeout_ms":{"type":"number","description":"Milliseconds after which it is stopped, %d by default, at most %d"},
"with_escalated_permissions":{"type":"boolean","description":"True to ask the user to let it run outside the sandbox"},
"justification":{"type":"string","description":"With with_escalated_permissions: one sentence for the user that says why"}
},"required":["command"],"additionalProperties":false}`,
			line, b.options.timeout().Milliseconds(), b.options.maxTimeout().Milliseconds()),
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
	Escalated     bool     `json:"with_escalated_permissions"`
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

// listText begins a list that a model wrote as a text, in JSON or as Python has it. No line of a shell begins so.
var listText = lazyregexp.Regexp{Text: `^\[(?:["']|\s*"[^"]*"\s*,)`}

// LineShell returns the beginning of the list that runs a line.
func (b *Toolbox) LineShell() []string { return b.line }

// shellArgumentsOf reads the arguments of either shell tool. A line becomes the list that runs it, before
// anything is decided.
func (b *Toolbox) shellArgumentsOf(call Call) (shellArguments, error) {
	var wire struct {
		shellArguments
		Command command `json:"command"`
		Cmd     command `json:"cmd"` // of gpt-oss, whose tool is container.exec
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
	} else {
		chosen := wire.Command
		if len(chosen.words) == 0 && strings.TrimSpace(chosen.line) == "" {
			chosen = wire.Cmd
		}
		if a.Command = chosen.words; strings.TrimSpace(chosen.line) != "" {
			a.Command = append(slices.Clone(b.line), chosen.line)
		}
	}
	if n := len(a.Command); n == 1 || n == len(b.line)+1 && slices.Equal(a.Command[:n-1], b.line) {
		if list := strings.TrimSpace(a.Command[n-1]); listText.Get().MatchString(list) { // as a text
			a.Command = nil // the call keeps its own
			if json.Unmarshal([]byte(list), &a.Command) != nil {
				return *a, &argumentError{"command", "want an array, found a text with a part of one"}
			}
		}
	}
	for i, word := range a.Command {
		if strings.Contains(word, "\x00") {
			return *a, &argumentError{fmt.Sprintf("command.%d", i), "has a NUL byte"}
		}
	}
	switch {
	case len(a.Command) == 0:
		return *a, &argumentError{"command", "want at least one word"}
	case a.TimeoutMS != nil && !(*a.TimeoutMS > 0):
		return *a, &argumentError{"timeout_ms", "want more than 0"}
	case a.Timeout != nil && !(*a.Timeout > 0):
		return *a, &argumentError{"timeout", "want more than 0"}
	}
	a.TimeoutMS = cmp.Or(a.TimeoutMS, a.Timeout)
	return *a, nil
}

// limit returns how long the command may run. lowered is true if the model has asked for
// more.
func (a *shellArguments) limit(o *Options) (limit time.Duration, lowered bool) {
	if a.TimeoutMS == nil {
		return o.timeout(), false
	}
	most := float64(o.maxTimeout())
	asked := *a.TimeoutMS * float64(time.Millisecond)
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
	// argv is what is started, with the environment env. A rule that lets the command run outside the
	// sandbox sets both.
	argv, env []string
	// withheld are names of variables that the command does not get, if such a rule lets it run.
	withheld []string
	// timeout is how long it may run, which is less than the model has asked for if lowered is true.
	timeout time.Duration
	lowered bool
	purpose string // of a line of the server, such as a check; "" for a call of the model
}

// run reads a call of either shell tool.
func (t *Turn) run(call Call) (attempt, error) {
	args, err := t.box.shellArgumentsOf(call)
	if err != nil {
		return attempt{}, err
	}
	r, err := t.attempt(call.ID, args)
	r.timeout, r.lowered = args.limit(&t.box.options)
	return r, err
}

// attempt prepares a command.
func (t *Turn) attempt(id string, args shellArguments) (attempt, error) {
	if strings.Contains(t.at(args.Workdir), "\x00") {
		return attempt{}, &argumentError{"workdir", "has a NUL byte"}
	}
	dir, err := t.near(args.Workdir)
	if err != nil {
		return attempt{}, &argumentError{"workdir", err.Error()}
	}
	// The user sees and approves the real folder, not a link to it.
	r := attempt{turn: t, id: id, dir: paths.Real(dir), named: dir, shellArguments: args, argv: args.Command,
		env: t.box.options.Environ}
	if shell := t.box.options.Shell; shell != "" { // it reads its profile and then executes the command
		r.argv = append([]string{shell, "-lc", `exec "$@"`, shell}, args.Command...)
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

// Check runs a line as a command, and returns why it did not run, or why its confinement stopped it. An error ends the turn,
// as that of [Turn.Call].
func (t *Turn) Check(ctx context.Context, l engine.Line) (why string, err error) {
	r, err := t.attempt(l.ID, shellArguments{Command: append(slices.Clone(t.box.line), l.Text)})
	if err != nil {
		return err.Error(), nil
	}
	r.timeout, r.purpose = l.Limit, l.Purpose()
	if why, err = r.decide(ctx); t.ran {
		why = t.stopped
	}
	return why, err
}

// person reports whether a rule wants a person to be asked about the command each time.
func (r attempt) person() bool { return decide.Mentions(r.turn.box.options.Ask, r.Command) }

// judge has the policy decide about the command, and prepares its sandbox.
func (r attempt) judge() (decide.Verdict, Confinement) {
	return r.turn.judge(decide.Input{
		Strict:          r.turn.box.options.Strict,
		Command:         r.Command,
		Escalated:       r.Escalated,
		SessionApproved: r.turn.box.session[r.key()] && !r.person(),
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
		in.Near = false // there is a sandbox, and what it hides is hidden there, too
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

// check fails for a command that Windows must not start, whoever lets it: one whose program lies in the network, since
// a look at it already signs in there, and a batch file with words that are not what runs.
func (r attempt) check() error {
	if runtime.GOOS != "windows" {
		return nil
	}
	program := r.Command[0]
	if filepath.Base(program) != program {
		if !filepath.IsAbs(program) {
			program = filepath.Join(r.dir, program)
		}
		if err := paths.Near(program, r.turn.Cwd); err != nil {
			return err
		}
	}
	path, err := run.LookPath(program, r.dir, r.env)
	if err != nil {
		return nil // the start says so
	}
	return run.CheckBatch(runtime.GOOS, path, r.Command)
}

// decide has the policy decide about the command, and then runs it, asks or refuses.
func (r attempt) decide(ctx context.Context) (output string, err error) {
	if err := r.check(); err != nil {
		return r.refuse(fmt.Sprintf("not run: %v", err)), nil
	}
	verdict, c := r.judge()
	action := verdict.Action
	switch {
	case action == decide.Refuse:
		return r.refuse(verdict.Reason), nil
	case action == decide.Ask:
		confined, refusal, err := r.ask(ctx, r.reason(cmp.Or(r.Justification, verdict.Reason)), action, c != nil)
		if err != nil || refusal != "" {
			return refusal, err
		}
		if !confined {
			c = nil
		}
		after := decide.Verdict{Action: decide.Ask, Reason: stoppedInside}
		if r.purpose != "" {
			after = decide.AfterCheck(r.turn.ApprovalPolicy, r.purpose)
		}
		return r.start(ctx, c, after)
	case (action == decide.Run) != (c == nil):
		return "", errors.New("a command has a sandbox that the policy does not want, or lacks one")
	case r.person():
		why := r.reason("a rule of the user asks about this command" + ifApproved[action])
		if _, refusal, err := r.ask(ctx, why, action, false); err != nil || refusal != "" {
			return refusal, err
		}
	}
	after := decide.AfterDenial(r.turn.ApprovalPolicy)
	switch {
	case r.purpose != "":
		after = decide.AfterCheck(r.turn.ApprovalPolicy, r.purpose)
	case action == decide.RunReadOnly:
		after = decide.Verdict{Reason: "it ran in the read-only sandbox without network, which stopped it; the user " +
			"is asked about commands that are not known to be safe"}
	case r.turn.box.session[r.key()]:
		after = decide.Verdict{Action: decide.Ask, Reason: stoppedInside}
	}
	return r.start(ctx, c, after)
}

// reason returns the reason of a question before the command runs: what a line of the server is for, and why, perhaps "".
func (r attempt) reason(why string) string {
	if r.purpose == "" || why == "" {
		return r.purpose + why
	}
	return r.purpose + ": " + why
}

// refuse reports that the command is not run, and returns why.
func (r attempt) refuse(reason string) string {
	return r.turn.refuse(protocol.Refused{Command: r.Command, Cwd: r.dir, Reason: reason, CallID: r.id})
}

// ifApproved says where a command runs after a question that a rule wants about what the policy would let run.
var ifApproved = [decide.Run + 1]string{
	decide.RunSandboxed: "; if approved, it runs in the sandbox",
	decide.RunReadOnly:  "; if approved, it runs in the read-only sandbox",
}

// stoppedInside is the reason of a question about a command that a rule, or an approval for the
// session, allowed in the sandbox.
const stoppedInside = "the sandbox stopped the command, which was allowed only inside; retry without sandbox?"

// ask asks whether the command may run. Then is what an approval allows, where Ask means outside the
// sandbox. Confined is true if it may run only in the sandbox, and refusal is "" if it may run.
func (r *attempt) ask(
	ctx context.Context, reason string, then decide.Action, confinable bool,
) (confined bool, refusal string, err error) {
	o := &r.turn.box.options
	full := r.turn.SandboxPolicy.Mode == protocol.SandboxDangerFullAccess
	leaves := then == decide.Ask || then == decide.Run
	req := approval.Command{
		CallID: r.id, Command: r.Command, Cwd: r.dir,
		Reason: reason, FromEngine: reason != r.Justification,
		LeavesSandbox: leaves && !full, NoSandbox: leaves && full, Confinable: confinable, Notes: r.planted(),
		// Where the sandbox cannot hold the command, an approval that lasts would let it out again.
		Once: r.person() || !full && !confinable,
	}
	if p := r.turn.SandboxPolicy; req.LeavesSandbox && p.Mode == protocol.SandboxWorkspaceWrite && !p.NetworkAccess &&
		r.online() {
		req.Tip = o.HostsTip
	}
	shown := run.HoldFolders(r.dir)
	defer shown.Close()
	out := r.turn.Host.Ask(ctx, req)
	refusal, err = readOutcome("the command was not run", out)
	switch {
	case err != nil || refusal != "":
	case shown.Replaced() != "":
		refusal = fmt.Sprintf("not run: the folder %s was replaced before the user answered", r.dir)
	case out.Confined && !confinable:
		refusal = "not run: it may run only in the sandbox, which is not possible"
	case out.Ruled && !out.Confined:
		if err := r.leave(out.Environ); err != nil {
			refusal = r.refuse(fmt.Sprintf("not run: a rule lets it run outside the sandbox, but %v", err))
		}
	case out.Decision == elicit.ApprovedForSession && !req.Once && !out.Confined:
		r.turn.box.session[r.key()] = true
	}
	return out.Confined, refusal, err
}

// leave sets how the command runs if a rule lets it run outside the sandbox, with some variables.
func (r *attempt) leave(named []string) (err error) {
	commands, plain := decide.Commands(r.Command)
	if !plain {
		return errors.New("it is more than plain commands")
	}
	o := &r.turn.box.options
	env, client := slices.Clone(o.Environ), []string(nil)
	if o.Client != nil {
		client = o.Client()
	}
	for _, name := range named {
		if value := run.Value(client, name); value != "" && run.Value(env, name) == "" {
			env = append(env, name+"="+value)
		}
	}
	r.argv, r.env, err = o.Programs.Outside(r.Command, commands, r.dir, env, slices.Concat(named, o.Set),
		r.turn.asked()...)
	for _, entry := range client {
		if name, value, _ := strings.Cut(entry, "="); value != "" && run.Value(r.env, name) == "" {
			r.withheld = append(r.withheld, name)
		}
	}
	return err
}

// few returns some words, and how many there are besides.
func few(words []string, most int) string {
	shown := strings.Join(words[:min(len(words), most)], ", ")
	if more := len(words) - most; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return shown
}

// asked returns the folders that commands of the turn may have written besides those that [Options.Programs] knows.
// They do not depend on the sandbox mode: a command of another turn, or a patch, may have written there.
func (t *Turn) asked() []string {
	p := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, WritableRoots: t.SandboxPolicy.WritableRoots}
	return box.AskedRoots(p, t.Cwd, t.box.options.Environ)
}

// planted returns a sentence about programs that the command may start, although commands may write them, if there are any.
func (r attempt) planted() (notes []string) {
	var names, folders []string
	o := &r.turn.box.options
	for _, path := range o.Programs.Planted(decide.Names(r.Command), r.dir, o.Environ, r.turn.asked()...) {
		names = append(names, elicit.ShowName(filepath.Base(path)))
		if folder, _ := elicit.ShowCode(filepath.Dir(path)); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	if names == nil {
		return nil
	}
	return []string{fmt.Sprintf("It may start %s from %s, where commands can write.", few(names, 3), few(folders, 3))}
}

// start runs the command in the sandbox c, or without one if it is nil. If the sandbox stops it and
// after is [decide.Ask], start asks the user to run the command again without the sandbox.
func (r attempt) start(ctx context.Context, c Confinement, after decide.Verdict) (output string, err error) {
	res, output, err := r.exec(ctx, c)
	if err != nil || res == nil || c == nil {
		return output, err
	}
	if words := c.Forbidden(*res); words != "" {
		note(res, words)
		return modelOutput(*res), nil
	}
	if r.turn.stopped = c.Denied(*res); r.turn.stopped == "" {
		return output, nil
	}
	if after.Action != decide.Ask {
		words := after.Reason
		switch r.turn.ApprovalPolicy {
		case protocol.ApprovalOnRequest, protocol.ApprovalUntrusted:
			words += "; with_escalated_permissions asks the user to run it outside"
		}
		note(res, words)
		return modelOutput(*res), nil
	}
	emit := r.turn.Host.Emit
	emit(protocol.BackgroundEvent{Message: fmt.Sprintf("the sandbox stopped the command, exit code %d: %s",
		res.ExitCode, run.FormatOutput(res.Stderr))})
	if _, refusal, err := r.ask(ctx, after.Reason, decide.Ask, false); err != nil || refusal != "" {
		return refusal, err
	}
	emit(protocol.BackgroundEvent{Message: "retrying command without sandbox"})
	r.turn.stopped = ""
	_, output, err = r.exec(ctx, nil)
	return output, err
}

// noProgram is what shells say, also if a command behind it ran all the same.
var noProgram = lazyregexp.Regexp{Text: `apply_patch: (?:command )?not found`}

// note adds a note for the model to the output.
func note(res *run.Result, words string) { res.Aggregated += "\n(" + words + ")\n" }

// exec runs the command until it ends, and emits its events. The result is nil if the command did
// not start, or was refused a host, which is then why it failed.
func (r attempt) exec(ctx context.Context, c Confinement) (result *run.Result, output string, err error) {
	t, o := r.turn, &r.turn.box.options
	spec := run.Spec{Argv: r.argv, Dir: r.dir, Env: r.env, Leftovers: o.Leftovers, Timeout: r.timeout}
	spec.Exact = c == nil // an approval is for this folder
	if c == nil {
		if c, err = o.Sandbox.Beyond(t.Cwd, o.Environ); err != nil {
			return nil, r.refuse(fmt.Sprintf("not run: %v", err)), nil
		}
	}
	if c != nil {
		spec.Confinement, spec.Leftovers = c, nil
		spec.Env = append(slices.Clone(r.env), c.Environ()...)
	}
	if err := t.Acting(); err != nil {
		return nil, "", err
	}
	var before plants
	writes := c != nil && !c.ReadOnly() && t.SandboxPolicy.Mode == protocol.SandboxWorkspaceWrite
	if writes {
		before = t.plants()
	}
	ctx, network := r.onHosts(ctx, c, &spec)
	t.Host.Emit(protocol.ExecCommandBegin{
		CallID: r.id, Command: r.Command, Cwd: r.dir, ParsedCmd: summary.Of(r.Command), ReadOnly: c != nil &&
			c.ReadOnly(),
	})
	res, err := o.Processes.Run(ctx, spec, func(s protocol.OutputStream, chunk []byte) {
		t.Host.Emit(protocol.ExecCommandOutputDelta{CallID: r.id, Stream: s, Chunk: chunk})
	})
	used, refused := network.close(r)
	var planted []string
	if writes { // all of its processes have ended
		planted = before.after()
	}
	for _, words := range planted {
		t.Host.Emit(protocol.BackgroundEvent{Message: words, Remark: true})
	}
	var start *run.StartError
	if errors.As(err, &start) {
		text := startText(start)
		res = run.Result{Stderr: text, Aggregated: text, ExitCode: -1}
	} else if err != nil {
		return nil, "", err
	}
	t.box.offline = c != nil && box.Offline(res)
	t.Host.Emit(protocol.ExecCommandEnd{
		CallID: r.id, Stdout: res.Stdout, Stderr: res.Stderr, AggregatedOutput: res.Aggregated,
		ExitCode: res.ExitCode, Duration: protocol.Duration(res.Duration), FormattedOutput: res.Formatted(),
		Omitted: res.Omitted, Hosts: used,
	})
	if start != nil {
		return nil, "execution error: " + start.Error(), nil
	}
	if res.ExitCode != 0 && len(r.withheld) > 0 {
		note(&res, "a rule of the user let it run outside the sandbox without these variables, which env of the rule "+
			"can name: "+few(r.withheld, 100))
	}
	for _, words := range planted {
		note(&res, words)
	}
	if refused != "" {
		refused = "Network: " + refused
		note(&res, refused)
	}
	t.ran, t.stopped = true, refused
	most := o.maxTimeout()
	switch {
	case (res.ExitCode == 127 || noProgram.Get().MatchString(res.Aggregated)) &&
		slices.ContainsFunc(r.Command, func(word string) bool { return strings.Contains(word, "apply_patch") }):
		note(&res, `apply_patch is no program, and the patch was not applied: call it alone, as ["apply_patch", PATCH]`)
	case r.lowered:
		note(&res, fmt.Sprintf("timeout_ms was lowered to %d, the most that is allowed", most.Milliseconds()))
	case res.TimedOut && r.timeout < most:
		note(&res, fmt.Sprintf("timeout_ms can be up to %d", most.Milliseconds()))
	}
	if refused != "" { // the user has said what it may not do, and is not asked once more
		return nil, modelOutput(res), nil
	}
	return &res, modelOutput(res), nil
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

// modelOutput returns the result of a command or patch for the model, a JSON text:
//
//	{"output":"…","metadata":{"exit_code":0,"duration_seconds":0.1}}
func modelOutput(r run.Result) string {
	output, err := json.Marshal(r.Formatted())
	if err != nil { // only for invalid UTF-8, which a Result does not have
		output = []byte(`""`)
	}
	return fmt.Sprintf(`{"output":%s,"metadata":{"exit_code":%d,"duration_seconds":%.1f}}`, output, r.ExitCode,
		r.Duration.Seconds())
}
