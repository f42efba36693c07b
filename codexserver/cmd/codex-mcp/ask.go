package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// askOptions are the options of codex-mcp ask.
type askOptions struct {
	*options
	task       []string // its words
	resume     string
	images     []string // their paths
	lastly     string   // the check
	attempts   int      // at once
	demo, json bool
	bringing   bool     // of the work of a conversation, in place of a task
	again      string   // the command that goes on with a conversation
	left       []string // the flags that it leaves out
}

func (o *options) askCommand() *cobra.Command {
	a := &askOptions{options: o}
	cmd := &cobra.Command{
		Use:   "ask [flags] task",
		Short: "Run one task from a terminal",
		Long: `Runs one task, shows the work, and asks in the terminal about what the sandbox
does not allow. By default the sandbox reads your files, writes nothing and has
no network; -a untrusted asks about every command that is not known to only read.
The task is the rest of the command line; - reads it from standard input. The exit
status is 0 for a task that was done, 1 for one that was refused, is incomplete or
failed, 2 for a wrong command line, 3 if nothing could begin, such as without a key,
an engine or a network, and 130 after ctrl-C.`,
		SuggestFor: []string{"exec", "run", "review", "resume", "demo"},
		Args:       cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, task []string) error {
			a.task, o.announcing, o.run = task, linkOnce, a.Run
			if a.bringing {
				o.run = a.Bring
			}
			a.again, a.left = a.repeated(cmd.Flags())
			return a.check(cmd.Flags())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&a.resume, "resume", "", "continue the conversation with this `ID`; last means the newest one")
	fs.StringVar(&a.lastly, "check", "",
		"run this `COMMAND` when the model says that it is done, and have it work on while that fails, three tries "+
			"in all")
	fs.StringSliceVarP(&a.images, "image", "i", nil,
		"show the model these `FILES`, with commas between them; repeatable")
	fs.IntVar(&a.attempts, "attempts", 0,
		"make `N` attempts at once, at most 4, each in a git worktree of its own, and show the best by --check")
	fs.BoolVar(&a.bringing, "bring", false,
		"with --resume and no task: show what the conversation's worktree has, and write it into your checkout if you "+
			"approve it")
	fs.BoolVar(&a.demo, "demo", false, "play a demo in a temporary folder: a script takes the place of the model, "+
		"and needs no key and no network")
	fs.BoolVar(&a.json, "json", false, "print events and the result as JSON, one on each line")
	return cmd
}

// check fails for flags that cannot be used together, and for a folder or an image that does not exist.
func (a *askOptions) check(fs *pflag.FlagSet) (err error) {
	for i, image := range a.images {
		if a.images[i], err = filepath.Abs(image); err == nil {
			_, err = os.Stat(image)
		}
		if err != nil {
			return fmt.Errorf("--image: %w", err)
		}
	}
	if a.bringing {
		if err := a.checkBring(fs); err != nil {
			return err
		}
	}
	switch {
	case a.demo && len(a.task) > 0:
		return errors.New("--demo brings its own task")
	case a.demo:
		for _, name := range []string{"engine", "codex", "cd", "profile", "resume", "check", "image", "attempts"} {
			if fs.Changed(name) {
				return fmt.Errorf("--demo has its own engine, configuration and folder; leave out --%s", name)
			}
		}
	case fs.Changed("attempts") && (a.attempts < 1 || a.attempts > protocol.MaxAttempts):
		return fmt.Errorf("--attempts: want 1 to %d", protocol.MaxAttempts)
	case fs.Changed("attempts") && fs.Changed("resume"):
		return errors.New("--attempts is for new conversations; leave out --resume")
	case !fs.Changed("resume"):
		a.folder, err = existingFolder(a.folder)
	case a.resume == "":
		return errors.New("--resume: want the id of a conversation, or last")
	case fs.Changed("cd"):
		return errors.New("--cd is for new conversations, and --resume continues an old one; leave out one of the two")
	}
	return err
}

var errNoTask = errors.New(`there is no task: pass it as an argument, as in codex-mcp ask "why do the tests fail?", ` +
	`or pass - to read it from standard input; --demo shows how it works`)

// read returns the task; piped says that standard input is no terminal.
func (a *askOptions) read(piped bool) (string, error) {
	task := strings.Join(a.task, " ")
	if task == "-" || task == "" && piped {
		b, err := io.ReadAll(io.LimitReader(os.Stdin, terminal.MaxTask+1))
		switch {
		case err != nil:
			return "", fmt.Errorf("reading the task: %w", err)
		case len(b) > terminal.MaxTask:
			return "", errors.New("the task has more than 8 MiB; put it into a file, and name that in the task")
		}
		task = string(b)
	}
	if task = strings.TrimSpace(task); task == "" {
		return "", errNoTask
	}
	return task, nil
}

// Run runs codex-mcp ask on the standard streams.
func (a *askOptions) Run(ctx context.Context, stdout, stderr io.Writer) error {
	console := terminal.Standard(os.Stdin, stdout, stderr)
	prompt := ""
	if !a.demo {
		var err error
		if prompt, err = a.read(console.Input == nil); err != nil {
			fmt.Fprintln(stderr, "codex-mcp:", err)
			return status(statusWrong)
		}
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, endingSignals()...)
	defer signal.Stop(signals)
	signalled, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	defer context.AfterFunc(signalled, func() { // a write that nobody reads does not keep the program from ending
		const all = 2*endTime + time.Second // of the turn and of the server
		time.AfterFunc(all, func() { os.Exit(terminal.StatusInterrupted) })
	})()
	if a.demo {
		return status(a.playDemo(signalled, console, signals))
	}
	// A conversation that is resumed has its own folder.
	task := &terminal.Task{
		Prompt: prompt, Check: a.lastly, Attempts: a.attempts, Images: a.images, Resume: a.resume, Folder: a.folder,
		JSON:    a.json,
		Program: a.again, Left: a.left,
	}
	code := a.askOn(signalled, task, console, os.Getenv, signals)
	if code == terminal.StatusImpossible && !a.json {
		fmt.Fprintln(stderr, "codex-mcp doctor says what is missing")
	}
	return status(code)
}

// askOn makes the server as for any client, connects to it in memory, and runs the task. The first
// signal also ends signalled.
func (a *askOptions) askOn(
	signalled context.Context, task *terminal.Task, console *terminal.Console, getenv func(string) string,
	signals <-chan os.Signal,
) int {
	fail := func(err error) int {
		fmt.Fprintln(console.Err, "codex-mcp:", terminal.Prose(err.Error()))
		if wrongLine(err) {
			return statusWrong
		}
		return terminal.StatusImpossible
	}
	c, err := configure(a.options, getenv, a.logger(console.Err))
	if err != nil {
		return fail(err)
	}
	if err := c.exposed(); err != nil {
		fmt.Fprintln(console.Err, "codex-mcp: warning:", terminal.Prose(err.Error()))
	}
	if !a.strict { // else choose refuses them
		for _, key := range config.Unknown(c.home, c.overrides, true) {
			fmt.Fprintln(console.Err, "codex-mcp: warning: unknown key:", terminal.Prose(key))
		}
	}
	a.forTerminal(c, console)
	if task.Resume != "" {
		switch err := c.goOn(signalled, task); {
		case signalled.Err() != nil:
			return terminal.StatusInterrupted
		case errors.Is(err, engine.ErrNotFound):
			fail(err)
			return statusWrong
		case err != nil:
			return fail(err)
		}
	}
	code := terminal.StatusAnswered
	err = c.withServer(signalled, a.options, func(s *codexserver.Server, e *choice) error {
		if err := c.ready(signalled, e, task); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(context.WithoutCancel(signalled))
		defer cancel()
		here, there := jsonrpc.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- errors.Join(s.Serve(ctx, there), there.Close()) }()
		code = terminal.Run(ctx, here, console, task, signals)
		select { // the server ends after its client
		case err := <-ended:
			return err
		case <-signals:
		case <-time.After(endTime):
		}
		return nil
	})
	switch {
	case err == nil:
		return code
	case signalled.Err() != nil:
		return terminal.StatusInterrupted
	}
	return max(code, fail(err))
}

// endTime bounds the end of the server after its client, when it ends its commands and
// writes its files.
const endTime = 5 * time.Second

// forTerminal adapts the settings to a client at a terminal.
func (a *askOptions) forTerminal(c *configuration, console *terminal.Console) {
	c.demo = a.demo
	c.settings.MaxResult = math.MaxInt32 // limits.result is for models
	c.settings.Patience = -1             // the terminal waits for the end
	p := &c.settings.Approvals
	p.Terminal = true
	if p.Where == setting.WherePage {
		p.Where = setting.WhereBoth // a person is there, who can be asked in any case
	}
	p.Schema = elicit.FormDecision // the client takes each decision; the setting is for hosts
	if !console.Asks(a.json) {
		p.Unable = "there is no terminal to ask on"
		p.Hint = "Pass -a on-request -s workspace-write to have files changed, allow a command in codex-mcp.toml " +
			"(approvals.allow), or answer in a browser with --approvals page."
	}
	if !a.logs { // the screen shows warnings in its own words
		c.log = slog.New(slog.NewTextHandler(console.Err, &slog.HandlerOptions{Level: slog.LevelError}))
	}
}
