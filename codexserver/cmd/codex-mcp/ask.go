package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/spf13/pflag"
)

// askOptions are the options of codex-mcp ask.
type askOptions struct {
	wanted  bool
	task    []string // the words of the task
	resume  string
	cwd     string
	model   string
	profile string
	policy  string
	sandbox string
	demo    bool
	json    bool
}

// startFlags are the flags for new conversations only.
var startFlags = []string{"cd", "model", "profile", "ask-for-approval", "sandbox"}

func (a *askOptions) flags(fs *pflag.FlagSet) {
	fs.StringVar(&a.resume, "resume", "", "continue the conversation with this `ID`; last means the newest one")
	fs.BoolVar(&a.demo, "demo", false, "play a demo in a temporary folder: a script takes the place of the model, and needs no key and no network")
	fs.StringVarP(&a.cwd, "cd", "C", "", "work in this `FOLDER`; default: the current one")
	fs.StringVarP(&a.model, "model", "m", "", "the `NAME` of the model")
	fs.StringVarP(&a.profile, "profile", "p", "", "the `NAME` of a profile in config.toml")
	into := func(where *string) func(string) error { return func(s string) error { *where = s; return nil } }
	policies, modes := words(protocol.ApprovalPolicies()), words(protocol.SandboxModes())
	fs.FuncP("ask-for-approval", "a", "the `POLICY` that says when to ask before a command runs: "+text.Or(policies), oneOf(policies, into(&a.policy)))
	fs.FuncP("sandbox", "s", "the `MODE` that says what commands may touch: "+text.Or(modes), oneOf(modes, into(&a.sandbox)))
}

// check fails for flags that cannot be used together.
func (a *askOptions) check(fs *pflag.FlagSet) error {
	if a.demo {
		return a.checkDemo(fs)
	}
	if !fs.Changed("resume") {
		return nil
	}
	if a.resume == "" {
		return errors.New("--resume: want the id of a conversation, or last")
	}
	for _, name := range startFlags {
		if fs.Changed(name) {
			return fmt.Errorf("--%s is for new conversations, and --resume continues an old one; leave out one of the two", name)
		}
	}
	return nil
}

var errNoTask = errors.New(`there is no task: pass it as an argument, as in codex-mcp ask "why do the tests fail?", or pass - to read it from standard input; --demo shows how it works`)

// read returns the task; stdin is nil when it is a terminal.
func (a *askOptions) read(stdin io.Reader) (string, error) {
	task := strings.Join(a.task, " ")
	if task == "-" || task == "" && stdin != nil {
		if stdin == nil {
			stdin = os.Stdin
		}
		b, err := io.ReadAll(io.LimitReader(stdin, terminal.MaxTask+1))
		if err != nil {
			return "", fmt.Errorf("reading the task: %w", err)
		}
		if len(b) > terminal.MaxTask {
			return "", terminal.ErrTaskTooLong
		}
		task = string(b)
	}
	if task = strings.TrimSpace(task); task == "" {
		return "", errNoTask
	}
	return task, nil
}

// planTool is the one argument that ask passes without a flag.
const planTool = "include-plan-tool"

// arguments returns the arguments of the tool codex: only those with a flag on the command
// line, since the server may have locked the others.
func (a *askOptions) arguments(folder string) map[string]any {
	all := map[string]any{planTool: true}
	if a.cwd != "" {
		all["cwd"] = folder
	}
	for name, value := range map[string]string{"model": a.model, "profile": a.profile, "approval-policy": a.policy, "sandbox": a.sandbox} {
		if value != "" {
			all[name] = value
		}
	}
	return all
}

// ask runs codex-mcp ask on the standard streams.
func ask(ctx context.Context, o *options, stdout, stderr io.Writer) int {
	defer surviveBrokenPipes()()
	console := terminal.Standard(os.Stdin, stdout, stderr)
	var piped io.Reader
	if console.Input == nil {
		piped = os.Stdin
	}
	var task *terminal.Task
	if !o.ask.demo {
		var err error
		if task, err = o.ask.newTask(o, piped); err != nil {
			fmt.Fprintln(stderr, "codex-mcp:", err)
			return 2
		}
	}
	ending := endingSignals()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, ending...)
	defer signal.Stop(signals)
	signalled, stop := signal.NotifyContext(ctx, ending...)
	defer stop()
	console.Out, console.Err = &timeoutWriter{w: console.Out, ctx: signalled}, &timeoutWriter{w: console.Err, ctx: signalled}
	if o.ask.demo {
		return o.playDemo(ctx, console, signals)
	}
	return askOn(ctx, o, task, console, os.Getenv, signals)
}

// timeoutWriter writes to w. After the end of ctx it abandons a write that takes longer
// than endTime, so that the program can end although nothing reads its output.
type timeoutWriter struct {
	w     io.Writer
	ctx   context.Context
	stuck atomic.Bool
}

var errStuck = errors.New("nothing reads the output")

func (i *timeoutWriter) Write(b []byte) (n int, err error) {
	if i.stuck.Load() {
		return 0, errStuck
	}
	type result struct {
		n   int
		err error
	}
	b = slices.Clone(b) // an abandoned write reads it after the return
	done := make(chan result, 1)
	go func() {
		n, err := i.w.Write(b)
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		return r.n, r.err
	case <-i.ctx.Done():
	}
	select {
	case r := <-done:
		return r.n, r.err
	case <-time.After(endTime):
		i.stuck.Store(true)
		return 0, errStuck
	}
}

func (a *askOptions) newTask(o *options, stdin io.Reader) (*terminal.Task, error) {
	prompt, err := a.read(stdin)
	if err != nil {
		return nil, err
	}
	task := &terminal.Task{Prompt: prompt, Resume: a.resume, JSON: a.json, Program: o.name + " ask", Version: version()}
	if a.resume == "" { // a resumed conversation has its folder and its model
		if task.Folder, err = existingFolder(a.cwd); err != nil {
			return nil, err
		}
		task.Arguments = a.arguments(task.Folder)
	}
	return task, nil
}

// askOn makes the server as for any client, connects to it in memory, and runs the task.
func askOn(ctx context.Context, o *options, task *terminal.Task, console *terminal.Console, getenv func(string) string, signals <-chan os.Signal) int {
	fail := func(err error) int {
		fmt.Fprintln(console.Err, "codex-mcp:", terminal.Prose(err.Error()))
		return terminal.StatusFailed
	}
	c, err := configure(o, getenv, o.logger(console.Err))
	if err != nil {
		return fail(err)
	}
	for _, key := range config.UnknownToCodex(c.home, c.overrides) {
		if o.strict {
			break // choose refuses them
		}
		fmt.Fprintln(console.Err, "codex-mcp: warning: unknown key:", terminal.Prose(key))
	}
	c.forTerminal(o, console)
	if slices.Contains(c.settings.LockedArguments, planTool) {
		delete(task.Arguments, planTool)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type start struct {
		*choice
		err error
	}
	started := make(chan start, 1)
	go func() {
		e, err := choose(ctx, o, c)
		started <- start{e, err}
	}()
	var e start
	interrupted := false
	select {
	case e = <-started:
	case <-signals:
		interrupted = true
		cancel()
		e = <-started
	}
	if e.err != nil && !interrupted {
		return fail(e.err)
	}
	if interrupted {
		if e.err == nil {
			e.Close()
		}
		return terminal.StatusInterrupted
	}

	here, there := jsonrpc.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := c.serve(ctx, o, e.choice, there)
		there.Close() // serve may have failed before it used the connection
		ended <- errors.Join(err, e.Close())
	}()
	code := terminal.Run(ctx, here, console, task, signals)
	select { // the server ends after its client
	case err = <-ended:
	case <-signals:
		cancel()
	case <-time.After(endTime):
		cancel()
	}
	if err != nil {
		fmt.Fprintln(console.Err, "codex-mcp:", terminal.Prose(err.Error()))
		code = max(code, terminal.StatusFailed)
	}
	return code
}

// endTime bounds the end of the server after its client, when it ends its commands and
// writes its files, and a write after a signal.
const endTime = 5 * time.Second

// forTerminal adapts the settings to a client at a terminal.
func (c *configuration) forTerminal(o *options, console *terminal.Console) {
	c.settings.MaxResult = math.MaxInt32                                // limits.result is for models
	c.settings.Patience = -1                                            // the terminal waits for the end
	if list := "codex-list"; !slices.Contains(c.settings.Tools, list) { // for --resume last; the settings are for models
		c.settings.Tools = append(c.settings.Tools, list)
	}
	if o.ask.resume == "" {
		c.settings.FullAccess = setting.FullAccessAllow // the flags are the person's word, which a conversation's file is not
	}
	a := &c.settings.Approvals
	a.Terminal = true
	a.Schema = cmp.Or(a.Schema, "decision") // the client takes each decision
	if !console.Asks(o.ask.json) {
		a.Unable = "there is no terminal to ask on"
		a.Hint = "Allow the command in codex-mcp.toml (approvals.allow), choose another --ask-for-approval, or answer in a browser with --approvals page."
	}
	if !o.logs { // the screen shows warnings in its own words
		c.log = slog.New(slog.NewTextHandler(console.Err, &slog.HandlerOptions{Level: slog.LevelError}))
	}
}
